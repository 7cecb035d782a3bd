"""Stories of work that runs when the process is killed, each in a separate file."""

from tests.crash.stories.cancel import CancelledCalls, CancelledReply
from tests.crash.stories.edited_arguments import EditedArguments
from tests.crash.stories.parallel_tasks import ParallelTasks
from tests.crash.stories.picture import Picture
from tests.crash.stories.program import Program
from tests.crash.stories.queue import Queue
from tests.crash.stories.sent_again import SentAgain
from tests.crash.stories.steering import Steering
from tests.crash.stories.story import Story
from tests.crash.stories.versions import Edit, Rerun
from tests.crash.stories.whole_turn import WholeTurn

STORIES: dict[str, Story] = {
    "turn": WholeTurn(),
    "cancelled calls": CancelledCalls(),
    "cancelled reply": CancelledReply(),
    "rerun": Rerun(),
    "edit": Edit(),
    "steering": Steering(),
    "edited arguments": EditedArguments(),
    "queue": Queue(),
    "picture": Picture(),
    "parallel tasks": ParallelTasks(),
    "sent again": SentAgain(),
    "program": Program(),
}
