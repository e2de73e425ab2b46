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

// HazardNames returns the names of the hazards that can be accepted: those of roles, and foreign-images of images that no archive has.
func HazardNames() []string {
	return []string{
		"admission-webhooks", "anybody", "bind", "certificates", "escalate", "everything", "foreign-images", "impersonate", "node-proxy",
		"persistent-volumes", "pod-exec", "read-secrets", "service-account-token", "wildcard-group", "wildcard-resource", "wildcard-verb",
		"write-crds", "write-namespaces", "write-roles",
	}
}
