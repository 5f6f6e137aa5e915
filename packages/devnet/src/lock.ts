import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Thrown when a live process already has the directory or file. */
export class InUseError extends Error {
  constructor(subject: string) {
    super(`${subject} is in use by another running process. Stop that one first, or choose another place.`)
    this.name = 'InUseError'
  }
}

/**
 * Locks what `subject` names for this process until release() or the death of the process. A pid file cannot guarantee
 * that (a pid is reused, and two starters can both find it stale), so this is an operating system lock: the exclusive
 * lock that SQLite takes on an empty file.
 */
export function takeLock(file: string, subject: string): { release(): void } {
  const handle = open(file, subject)
  try {
    handle.exec('pragma journal_mode = memory; begin exclusive')
    chmodSync(file, 0o600)
  } catch (cause) {
    handle.close()
    if (cause instanceof Error && cause.message.includes('locked')) throw new InUseError(subject)
    throw cause
  }
  return {
    release() {
      if (handle.isOpen) handle.close()
    },
  }
}

function open(file: string, subject: string): DatabaseSync {
  try {
    return new DatabaseSync(file)
  } catch (cause) {
    throw new Error(`${subject} cannot be written by this user`, { cause })
  }
}
