"""A streams group whose members, processes and topics change at random; it keeps its last target assignment."""

from broker_sim.group.streams.assignors.spec import GroupSpec, MemberSpec, SubtopologyTasks
from broker_sim.group.streams.tasks import TasksTuple
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable

SUBTOPOLOGY_IDS = [*map(str, range(14)), "\uffff", "\U0001f600"]  # Java orders the last two the other way


class RandomGroup:
    def __init__(self, rng):
        self.rng = rng
        self.processes = {}
        """Process by member."""
        self.targets = {}
        self.standby = rng.choice([None, 0, 0, 1, 1, 2, 3])
        count = rng.choice([1, 1, 2, 3, 5, 16])
        chosen = SUBTOPOLOGY_IDS[:count] if rng.random() < 0.7 else rng.sample(SUBTOPOLOGY_IDS, count)
        self.subtopologies = {
            subtopology_id: SubtopologyTasks(rng.choice([1, 2, 3, 5, 8, 13]), rng.random() < 0.6)
            for subtopology_id in sorted(chosen, key=lambda text: text.encode("utf-16-be"))
        }
        for _ in range(rng.randrange(1, 6)):
            self._join()

    def change(self):
        """Make one random change."""
        rng = self.rng
        match rng.randrange(10):
            case 0 | 1 | 2:
                self._join()
            case 3 | 4 if len(self.processes) > 1:
                self._leave([rng.choice(list(self.processes))])
            case 5:
                failed_process = rng.choice(list(self.processes.values()))
                failed_members = [member for member, process in self.processes.items() if process == failed_process]
                if len(failed_members) < len(self.processes):
                    self._leave(failed_members)
            case 6:
                self.standby = rng.choice([0, 1, 2])
            case 7:
                subtopology_id = rng.choice(list(self.subtopologies))
                old = self.subtopologies[subtopology_id]
                count = max(1, old.number_of_tasks + rng.choice([-2, 3]))
                self.subtopologies[subtopology_id] = SubtopologyTasks(count, old.is_stateful)
            case 8:
                self._scramble()

    def _join(self):
        member_id = f"{self.rng.getrandbits(128):032x}"
        self.processes[member_id] = f"process-{self.rng.randrange(5)}"

    def _leave(self, members):
        for member_id in members:
            del self.processes[member_id]
            self.targets.pop(member_id, None)

    def _scramble(self):
        """Give all members random previous tasks, which may overlap."""
        for member_id in self.processes:
            self.targets[member_id] = TasksTuple(self._some_tasks(), self._some_tasks())

    def _some_tasks(self):
        rng = self.rng
        tasks = {}
        for subtopology_id, (count, _) in self.subtopologies.items():
            numbers = [number for number in range(count) if rng.random() < 0.3]
            if numbers:
                tasks[subtopology_id] = frozenset(numbers)
        return tasks

    def spec(self):
        members = HashTable(string_hash)
        for member_id, process_id in self.processes.items():
            members.put(member_id, MemberSpec(process_id, self.targets.get(member_id, TasksTuple())))
        configs = {} if self.standby is None else {"num.standby.replicas": str(self.standby)}
        return GroupSpec({member_id: members[member_id] for member_id in members.in_order()}, configs)
