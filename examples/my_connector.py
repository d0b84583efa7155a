"""A complete connector in forty lines of code: copies weather stations to a topic."""

import math
from collections.abc import Mapping

from connect import ConfigDef, ConfigType, SourceConnector, SourceRecord, SourceTask, Struct
from connect.data import FLOAT64, INT64, struct

MEASUREMENT = struct("measurement", {"hour": INT64, "degrees": FLOAT64})


class StationsConnector(SourceConnector):
    """Distributes the stations over the tasks."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The settings; the REST API shows and validates them."""
        topic = ConfigDef().define("topic", ConfigType.STRING, doc="The topic for measurements")
        return topic.define("stations", ConfigType.LIST, doc="The stations to read")

    def start(self, config: Mapping[str, str]) -> None:
        """Keeps the settings for the tasks."""
        self._settings = self.config().parse(config)

    def task_class(self) -> type[SourceTask]:
        """The class of the tasks."""
        return StationsTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """The configuration of each task: some of the stations."""
        topic, stations = self._settings.text("topic"), self._settings.strings("stations")
        shares = [stations[number::max_tasks] for number in range(max_tasks)]
        return [{"topic": topic, "stations": ",".join(share)} for share in shares if share]


class StationsTask(SourceTask):
    """Copies measurements; each record has an offset to continue from."""

    def start(self, config: Mapping[str, str]) -> None:
        """Continues from the stored offsets."""
        settings = StationsConnector.config().parse(config)
        self._topic = settings.text("topic")
        self._hours: dict[str, int] = {}
        for station in settings.strings("stations"):
            stored = self.context.offset_reader.offset({"station": station}) or {"hour": 0}
            self._hours[station] = int(str(stored["hour"]))

    def poll(self) -> list[SourceRecord]:
        """Wait, then return the next measurement of every station; a stop ends the wait."""
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
