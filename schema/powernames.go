package schema

// PowerNames returns the names of all powers, those of rights first.
func PowerNames() []PowerName {
	return []PowerName{
		PowerAllRights, PowerChangeRights, PowerActAsOthers, PowerReadSecrets, PowerRunPodsElsewhere, PowerControlNodes, PowerIssueIdentities,
		PowerInterceptRequests, PowerMarkNamespaces, PowerRawStorage, PowerRedirectTraffic, PowerStarveOrPreempt, PowerDeleteOthers, PowerReadOthers,
		PowerChangeOthers, PowerInstructsController, PowerRightsForPeople, PowerExtendsRoles, PowerBorrowsRights,

		PowerPodOnNode, PowerObjectsElsewhere, PowerInterceptsRequests, PowerDefinesForeignAPIs, PowerClaimsGroup, PowerDefaultForEveryone, PowerTakesTraffic,
		PowerOpensToOutside, PowerReadsOthersMetrics, PowerSchedulesAboveOthers, PowerUsesForeignData,
	}
}
