"""How much each task of a Spark job reads, asked of the driver's own records.

Needs a session whose driver is in this process. Jobs are told apart by the group that they run in.
"""

from dataclasses import dataclass

MOST_TASKS = 100_000


@dataclass(frozen=True, order=True)
class TaskSize:
    """What one task has read: from other tasks, or from files."""

    rows: int
    bytes: int
    stage: int
    tasks: int
    """Number of tasks of its stage."""

    def __str__(self) -> str:
        return f"a task of stage {self.stage} ({self.tasks} tasks) with {self.rows:,} rows, {self.bytes / 1e6:.1f} MB"


def stages_run(spark, group: str) -> set[int]:
    """Return the stages that a job group ran; those are left out that Spark skipped, as another job had run them."""
    context = spark.sparkContext
    inside = context._jsc.sc()
    inside.listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), inside.statusStore()
    return {
        stage
        for job in tracker.getJobIdsForGroup(group)
        for stage in tracker.getJobInfo(job).stageIds
        if store.taskList(stage, 0, 1).size()
    }


def largest_task(spark, group: str, *, shuffled_only: bool = False) -> TaskSize:
    """Return the task that has read the most rows among all tasks of a job group."""
    stages = stages_run(spark, group)
    store = spark.sparkContext._jsc.sc().statusStore()
    found = []
    for stage in stages:
        tasks = store.taskList(stage, 0, MOST_TASKS)
        for number in range(tasks.size()):
            metrics = tasks.apply(number).taskMetrics()
            if not metrics.isDefined():
                continue
            shuffle, files = metrics.get().shuffleReadMetrics(), metrics.get().inputMetrics()
            rows = shuffle.recordsRead()
            size = shuffle.localBytesRead() + shuffle.remoteBytesRead()
            if not shuffled_only:
                rows, size = rows + files.recordsRead(), size + files.bytesRead()
            found.append(TaskSize(rows, size, stage, tasks.size()))
    return max(found)
