"""Stands for ssh(1) to a Windows host with IIS: takes the PowerShell that the example writes, and no other.

Settings are kept in the file $WINDOWS; each command line of a script has to be one that is known here, with a
value that the real one would take by its documentation.
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from page import serve_page

HTTP = r"HKLM:\SYSTEM\CurrentControlSet\Services\HTTP\Parameters"
REGISTRY = {"UriEnableCache", "UriMaxUriBytes", "UriMaxCacheMegabyteCount", "UriScavengerPeriod"}
ATTRIBUTES = {
    ("system.webServer/caching", "enabled"): "bool",
    ("system.webServer/caching", "enableKernelCache"): "bool",
    ("system.webServer/caching", "maxCacheSize"): "int",
    ("system.webServer/caching", "maxResponseSize"): "int",
    ("system.webServer/serverRuntime", "frequentHitThreshold"): "int",
    ("system.webServer/serverRuntime", "frequentHitTimePeriod"): "time",
    ("system.applicationHost/applicationPools/applicationPoolDefaults", "queueLength"): "int",
    ("system.webServer/urlCompression", "doStaticCompression"): "bool",
    ("system.webServer/httpLogging", "dontLog"): "bool",
}
VALUES = {"int": r"(\d+)", "bool": r"\$(true|false)", "time": r"\(New-TimeSpan -Seconds (\d+)\)"}
SHOWN = {"int": ".Value", "bool": ".Value", "time": ".Value.TotalSeconds"}
IGNORED = ("#", "$ErrorActionPreference = 'Stop'", "Import-Module WebAdministration")

APPHOST = "-PSPath 'MACHINE/WEBROOT/APPHOST'"
SET_REGISTRY = re.compile(
    rf"New-ItemProperty -Path '{re.escape(HTTP)}' -Name '(\w+)' -PropertyType DWord -Value (\d+) -Force "
    r"\| Out-Null"
)
SET_ATTRIBUTE = re.compile(
    rf"Set-WebConfigurationProperty {APPHOST} -Filter '([\w./]+)' -Name '(\w+)' -Value (.+)"
)
ASK_REGISTRY = re.compile(
    rf"""Write-Output "([\w.]+)=\$\(\(Get-ItemProperty -Path '{re.escape(HTTP)}' -Name '(\w+)'\)"""
    r"""\.'(\w+)'\)\""""
)
ASK_ATTRIBUTE = re.compile(
    rf"""Write-Output "([\w.]+)=\$\(\(Get-WebConfigurationProperty {APPHOST} -Filter '([\w./]+)' """
    r"""-Name '(\w+)'\)([\w.]+)\)\""""
)
Settings = dict[str, str]


def set_registry(settings: Settings, name: str, value: str) -> None:
    if name not in REGISTRY or int(value) > 2**32 - 1:
        raise ValueError(f"{name} = {value}")
    settings[f"new {name}"] = value


def set_attribute(settings: Settings, section: str, name: str, written: str) -> None:
    found = re.fullmatch(VALUES[ATTRIBUTES[section, name]], written)
    if found is None:
        raise ValueError(f"{section} {name} = {written}")
    settings[f"{section} {name}"] = found[1].capitalize() if written.startswith("$") else found[1]


def ask_registry(settings: Settings, shown: str, name: str, again: str) -> None:
    if name != again:
        raise ValueError(f"{name} is not {again}")
    sys.stdout.write(f"{shown}={settings[name]}\n")


def ask_attribute(settings: Settings, shown: str, section: str, name: str, part: str) -> None:
    if part != SHOWN[ATTRIBUTES[section, name]]:
        raise ValueError(f"{part} of {section} {name}")
    value = settings[f"{section} {name}"]
    sys.stdout.write(f"{shown}={value}\n")


def stop_http(settings: Settings) -> None:
    for name in [each for each in settings if each.startswith("new ")]:
        settings[name.removeprefix("new ")] = settings.pop(name)
    settings["stopped"] = "yes"


def start_iis(settings: Settings) -> None:
    settings["stopped"] = "no"


COMMANDS: list[tuple[re.Pattern[str], Callable[..., None]]] = [
    (SET_REGISTRY, set_registry),
    (SET_ATTRIBUTE, set_attribute),
    (ASK_REGISTRY, ask_registry),
    (ASK_ATTRIBUTE, ask_attribute),
    (re.compile("Stop-Service -Name HTTP -Force"), stop_http),
    (re.compile("Start-Service -Name W3SVC"), start_iis),
]


def run_script(text: str, settings: Settings) -> None:
    """Run each line. Raises ValueError or KeyError for one that Windows would not take."""
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(IGNORED):
            continue
        found = [(run, match) for form, run in COMMANDS if (match := form.fullmatch(line))]
        if not found:
            raise ValueError(line)
        run, match = found[0]
        run(settings, *match.groups())


def main(arguments: list[str]) -> None:
    place = Path(os.environ["WINDOWS"])
    settings: Settings = json.loads(place.read_text()) if place.exists() else {"stopped": "yes"}
    match arguments:
        case [*_, "administrator@iis", "powershell", "-NoProfile", "-NonInteractive", "-Command", "-"]:
            try:
                run_script(sys.stdin.read(), settings)
            except (ValueError, KeyError) as error:
                sys.exit(f"powershell: error: {error}")
            place.write_text(json.dumps(settings))
        case [*_, "-N", "-L", forward, "administrator@iis"] if settings["stopped"] == "no":
            serve_page(int(forward.split(":")[1]), Path(os.environ["PAGE"]))
        case _:
            sys.exit(f"ssh: cannot do {arguments} with {settings}")


if __name__ == "__main__":
    main(sys.argv[1:])
