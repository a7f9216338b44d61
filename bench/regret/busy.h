/* busy.h - how much of the cores others have while something is measured. */
#ifndef BENCH_REGRET_BUSY_H
#define BENCH_REGRET_BUSY_H

struct busy {
    double elsewhere; /* share of all cores' time: other processes, and other machines on them */
    double load;      /* runnable tasks, mean of the last minute */
    double all_s, others_s; /* between begin and end */
};

void busy_begin(struct busy *busy);
void busy_end(struct busy *busy);

#endif
