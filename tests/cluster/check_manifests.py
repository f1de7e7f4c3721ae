#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks Kubernetes manifests offline: check_manifests.py [--together] FILE... Each document against the schema of its kind in
schemas/manifests.json, and what a schema cannot say: that the numbers of processes agree, and that what is referred to is there;
--together: also what one document says of another, which must be in one of the files.
Prints a line per document; exit status 1 if one is wrong, 77 without the packages yaml and jsonschema."""
import json
import os
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"no Python package {missing.name}: skipped")
    sys.exit(77)

SCHEMAS = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemas", "manifests.json")))


def schema_errors(document):
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    if kind not in SCHEMAS["kinds"]:
        return [f"no schema for {kind}"]
    schema = dict(SCHEMAS["kinds"][kind], **{"$defs": SCHEMAS["$defs"]})
    errors = jsonschema.Draft7Validator(schema).iter_errors(document)
    return [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in errors]


JOBSET = "metadata.labels['jobset.sigs.k8s.io/%s']"


def processes_errors(job, env, replicas):
    """Does the environment say how many processes there are, and which one this is?"""
    processes = env["OLYMPUS_NUM_PROCESSES"]
    if not job["completions"] == job["parallelism"]:
        return ["completions and parallelism differ"]
    if "value" in processes:
        right = replicas == 1 and int(processes["value"]) == job["completions"]
        return [] if right else ["completions and OLYMPUS_NUM_PROCESSES differ"]
    index = env.get("OLYMPUS_PROCESS_ID", {})
    paths = [e.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath") for e in (processes, index)]
    right = job["completions"] == 1 and paths == [JOBSET % "replicatedjob-replicas", JOBSET % "job-index"]
    return [] if right else ["OLYMPUS_NUM_PROCESSES and OLYMPUS_PROCESS_ID are not number and index of jobs of one pod"]


def job_errors(job, replicas=1):
    """Of an indexed job whose pods are processes, or `replicas` such jobs."""
    pod = job["template"]["spec"]
    container = pod["containers"][0]
    env = {e["name"]: e for e in container.get("env", [])}
    errors = []
    if job.get("completionMode") != "Indexed":
        errors.append("the pods have no index")
    errors += processes_errors(job, env, replicas)
    if "secretKeyRef" not in env["OLYMPUS_SECRET"].get("valueFrom", {}):
        errors.append("the secret is no Secret")
    volumes = {v["name"] for v in pod.get("volumes", [])}
    errors += [f"no volume {m['name']}" for m in container.get("volumeMounts", []) if m["name"] not in volumes]
    return errors


def meaning_errors(document):
    kind, spec = document["kind"], document.get("spec", {})
    if kind == "Job":
        return job_errors(spec)
    if kind == "JobSet":
        jobs = {j["name"]: j for j in spec["replicatedJobs"]}
        coordinator = spec["coordinator"]["replicatedJob"]
        if coordinator not in jobs:
            return [f"no job {coordinator}"]
        return job_errors(jobs[coordinator]["template"]["spec"], jobs[coordinator]["replicas"])
    if kind == "MPIJob":
        specs = spec["mpiReplicaSpecs"]
        arguments = specs["Launcher"]["template"]["spec"]["containers"][0]["args"]
        ranks = int(arguments[arguments.index("-n") + 1])
        return [] if ranks == specs["Worker"]["replicas"] * spec["slotsPerWorker"] else [f"{ranks} ranks, but other slots"]
    if kind == "PersistentVolumeClaim":
        return [] if "ReadWriteMany" in spec["accessModes"] else ["pods of several nodes cannot write to it (ReadWriteMany)"]
    return []


REFERENCES = {"claimName": "PersistentVolumeClaim", "serviceAccountName": "ServiceAccount", "subdomain": "Service"}


def references(part):
    """The (kind, name) of every document that this part of one refers to."""
    found = []
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if key in REFERENCES:
            found.append((REFERENCES[key], value))
        elif isinstance(value, (dict, list)):
            found += references(value)
    return found


def main(arguments):
    paths = [a for a in arguments if a != "--together"]
    documents = [(path, d) for path in paths for d in yaml.safe_load_all(open(path))]
    there = {(d.get("kind"), d.get("metadata", {}).get("name")) for _, d in documents} if "--together" in arguments else None
    wrong = 0
    for path, document in documents:
        errors = schema_errors(document) or meaning_errors(document)
        if there is not None:
            errors = errors + [f"no {kind} {name}" for kind, name in references(document) if (kind, name) not in there]
        wrong += bool(errors)
        print(f"{os.path.basename(path)}: {document.get('kind')}: {'; '.join(errors) or 'ok'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
