/* nccl.h - the part of NCCL that worker/collectives uses, emulated between threads of one process,
 * in the streams of the emulated runtime.
 *
 * As on a real device, an exchange that one rank has not run holds up the others until it does, or
 * until a member aborts; then all end with invalid results. A call that destroys or aborts a
 * communicator waits until all members have done one or the other. With EMULATED_QUIET in the
 * environment members do not learn that another one has aborted, which real ones on one machine may
 * not either. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_NCCL_H
#define TESTS_WORKER_KERNELS_EMULATED_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct emulated_stream *cudaStream_t;
typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef struct {
    int blocking;
} ncclConfig_t;
#define NCCL_CONFIG_INITIALIZER                                                                    \
    {                                                                                              \
        1                                                                                          \
    }

typedef enum {
    ncclSuccess,
    ncclUnhandledCudaError,
    ncclSystemError,
    ncclInternalError,
    ncclInvalidArgument,
    ncclInvalidUsage,
    ncclRemoteError,
    ncclInProgress
} ncclResult_t;
typedef enum { ncclFloat, ncclBfloat16 } ncclDataType_t;
typedef enum { ncclSum, ncclMax } ncclRedOp_t;

/* What ncclCommGetAsyncError() returns for communicators of this device, instead of their state;
 * -1: of no device. */
extern ncclResult_t emulated_refusal;
extern int emulated_refused_device;

const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int count, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclAllReduce(const void *source, void *destination, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduce(const void *source, void *destination, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *source, void *destination, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *source, void *destination, size_t count,
                               ncclDataType_t type, ncclRedOp_t operation, ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclAllGather(const void *source, void *destination, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *destination, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
