/* tape.cu - recordings as CUDA graphs: captured from a lane's stream once, launched as a whole. */
#include "worker/kernels/cuda/tape.h"

#include "worker/kernels/cuda/lane.h"

#include <utility>

struct tape {
    cudaGraphExec_t graph;
};

static cudaGraphExec_t capture(struct lane *lane, void (*issue)(void *context), void *context)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    lane_note(cudaStreamBeginCapture(lane->stream, cudaStreamCaptureModeThreadLocal),
              "beginning to record");
    if (lane->status)
        return NULL;
    issue(context);
    lane_note(cudaStreamEndCapture(lane->stream, &graph), "recording");
    if (!lane->status)
        lane_note(cudaGraphInstantiateWithFlags(&made, graph, 0), "what was recorded");
    if (graph)
        cudaGraphDestroy(graph);
    return made;
}

/* Capturing does none of the work, so an error in it leaves the status of the lane as it was. */
int tape_record(void (*issue)(void *context), void *context, struct tape **out, struct error *err)
{
    struct lane *lane = lane_here();
    int status_before = std::exchange(lane->status, 0);
    const char *what_before = lane->what;
    cudaGraphExec_t graph = capture(lane, issue, context);
    int status = std::exchange(lane->status, status_before);
    const char *what = std::exchange(lane->what, what_before);
    if (status) {
        (void)cudaGetLastError();
        return lane_words(err, (cudaError_t)status, what);
    }
    *out = new tape{graph};
    return 0;
}

void tape_play(struct tape *tape)
{
    lane_note(cudaGraphLaunch(tape->graph, lane_here()->stream), "work that was recorded");
}

void tape_destroy(struct tape *tape)
{
    if (!tape)
        return;
    cudaGraphExecDestroy(tape->graph);
    delete tape;
}
