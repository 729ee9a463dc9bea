"""Validates DIRECTORY/junit.xml and DIRECTORY/results.sarif: validate.py SCHEMAS DIRECTORY."""

import json
import sys
from pathlib import Path

import jsonschema
import xmlschema


def main(schemas: Path, directory: Path) -> int:
    wrong = []
    junit = xmlschema.XMLSchema(str(schemas / "junit.xsd"))
    for error in junit.iter_errors(str(directory / "junit.xml")):
        wrong.append(f"junit.xml: {error.path}: {error.reason}")
    schema = json.loads((schemas / "sarif.json").read_text())
    log = json.loads((directory / "results.sarif").read_text())
    validator = jsonschema.validators.validator_for(schema)
    checker = validator.FORMAT_CHECKER
    for error in validator(schema, format_checker=checker).iter_errors(log):
        wrong.append(f"results.sarif: {error.json_path}: {error.message}")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
