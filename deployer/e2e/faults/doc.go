// Package faults kills the program at every step of its verbs, and runs the same command again. LeftOut lists the verbs that it does not kill.
//
// A step is a call to the API server or a system call that changes a file. The calls go through a proxy that counts them;
// the system calls are counted by tracing the process. At each of them the process is ended with SIGKILL, once before the
// step is done and once after: then the server has executed the call and the answer is lost. The run after that must
// leave cluster and host as an undisturbed run does: the same objects with the same fields and owners, the same
// records and files. Custom resources that were there before, and objects of others, must be there as they were.
//
// What a run begins with is made once by the program itself; later it is brought back object by object, which is proved once to
// lead to the same cluster and host. Pods count as ready for a minute as soon as they run, so that runs need not wait for that.
//
// The lock of a killed process is not deleted: the run after it finds that the process has ended.
package faults
