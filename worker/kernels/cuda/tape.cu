/* tape.cu - recordings as CUDA graphs: captured from a stream's stream once, launched as a whole.
 */
#include "worker/kernels/cuda/tape.h"

#include "worker/kernels/cuda/stream.h"

#include <utility>

struct device_recording {
    cudaGraphExec_t graph;
};

static cudaGraphExec_t capture(struct device_stream *stream, void (*issue)(void *context),
                               void *context)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    stream_note(cudaStreamBeginCapture(stream->cuda, cudaStreamCaptureModeThreadLocal),
                "beginning to record");
    if (stream->status)
        return NULL;
    issue(context);
    stream_note(cudaStreamEndCapture(stream->cuda, &graph), "recording");
    if (!stream->status)
        stream_note(cudaGraphInstantiateWithFlags(&made, graph, 0), "what was recorded");
    if (graph)
        cudaGraphDestroy(graph);
    return made;
}

/* Capturing does none of the work, so an error in it leaves the status of the stream as it was. */
int recording_record(void (*issue)(void *context), void *context, struct device_recording **out,
                     struct error *err)
{
    struct device_stream *stream = stream_here();
    int status_before = std::exchange(stream->status, 0);
    const char *what_before = stream->what;
    cudaGraphExec_t graph = capture(stream, issue, context);
    int status = std::exchange(stream->status, status_before);
    const char *what = std::exchange(stream->what, what_before);
    if (status) {
        (void)cudaGetLastError();
        return stream_words(err, (cudaError_t)status, what);
    }
    *out = new device_recording{graph};
    return 0;
}

void recording_play(struct device_recording *recording)
{
    stream_note(cudaGraphLaunch(recording->graph, stream_here()->cuda), "work that was recorded");
}

void recording_destroy(struct device_recording *recording)
{
    if (!recording)
        return;
    cudaGraphExecDestroy(recording->graph);
    delete recording;
}
