/* busy.h - how much of the processor time others take while something is measured. */
#ifndef BENCH_REGRET_BUSY_H
#define BENCH_REGRET_BUSY_H

struct busy {
    double elsewhere;       /* share of all cores' time taken by other processes and other guests */
    double load;            /* load average of the last minute */
    double all_s, others_s; /* internal: the counters at busy_begin() */
};

void busy_begin(struct busy *busy);
void busy_end(struct busy *busy);

#endif
