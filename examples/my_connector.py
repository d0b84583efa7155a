"""A connector of one's own, complete in forty lines of code: weather stations into a topic."""

import math
from collections.abc import Mapping

from connect import SourceConnector, SourceRecord, SourceTask, Struct
from connect.config_def import ConfigDef, ConfigType
from connect.data import FLOAT64, INT64, struct

MEASUREMENT = struct("measurement", {"hour": INT64, "degrees": FLOAT64})


class StationsConnector(SourceConnector):
    """Says what there is to copy, and shares it among tasks."""

    @classmethod
    def config(cls) -> ConfigDef:
        """What a user can set; the REST API shows and checks it."""
        topic = ConfigDef().define("topic", ConfigType.STRING, doc="Where measurements go")
        return topic.define("stations", ConfigType.LIST, doc="The stations to ask")

    def start(self, config: Mapping[str, str]) -> None:
        """Keeps the settings for the tasks."""
        self._settings = self.config().parse(config)

    def task_class(self) -> type[SourceTask]:
        """Who copies."""
        return StationsTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Some of the stations for each task."""
        topic, stations = self._settings.text("topic"), self._settings.texts("stations")
        shares = [stations[number::max_tasks] for number in range(max_tasks)]
        return [{"topic": topic, "stations": ",".join(share)} for share in shares if share]


class StationsTask(SourceTask):
    """Copies; each record says from where to go on after it."""

    def start(self, config: Mapping[str, str]) -> None:
        """Goes on where the stored offsets say."""
        settings = StationsConnector.config().parse(config)
        self._topic = settings.text("topic")
        self._hours: dict[str, int] = {}
        for station in settings.texts("stations"):
            stored = self.context.offset_reader.offset({"station": station}) or {"hour": 0}
            self._hours[station] = int(str(stored["hour"]))

    def poll(self) -> list[SourceRecord]:
        """The next measurement of every station, after a wait that ends when the task shall."""
        self.context.stopping().wait(0.01)
        return [self._measurement(station) for station in self._hours]

    def _measurement(self, station: str) -> SourceRecord:
        hour = self._hours[station] = self._hours[station] + 1
        return SourceRecord(
            source_partition={"station": station},
            source_offset={"hour": hour},
            topic=self._topic,
            key=station,
            value_schema=MEASUREMENT,
            value=Struct(MEASUREMENT, [hour, 15 - 5 * math.cos(hour * math.pi / 12)]),
        )
