import { randomBytes } from 'node:crypto'
import { type Purser, PurserError, type RequestOptions } from '@purser/sdk'
import type { Args, Io } from './command.ts'

type Method = Parameters<Purser['request']>[0]
type Path = Parameters<Purser['request']>[1]

interface KeyedRequest extends Pick<RequestOptions, 'body' | 'query'> {
  readonly method: Method
  readonly path: Path
}

/** Thrown for a request that may have taken effect, with the Idempotency-Key that repeats it. `cause` is why there is no response. */
export class OutcomeUnknownError extends Error {
  readonly idempotencyKey: string
  /** The run that may have taken effect. `earlier`: one with the same key, because the service refused this one before it looked at the key. */
  readonly run: 'this' | 'earlier'

  constructor(cause: unknown, { idempotencyKey, run }: Pick<OutcomeUnknownError, 'idempotencyKey' | 'run'>) {
    super('The outcome of the request is not known.', { cause })
    this.idempotencyKey = idempotencyKey
    this.run = run
  }
}

/** The response to a request, and the Idempotency-Key that was sent with it. */
export interface Keyed {
  readonly response: unknown
  readonly idempotencyKey: string
}

/**
 * The exit code of a request that the service accepted: 3 if it waits for the approval of a person, so that nothing is
 * decided yet.
 */
export function acceptedExitCode(response: unknown): 0 | 3 {
  return Object(Object(response).approval).status === 'waiting' ? 3 : 0
}

/**
 * Sends a request that must not take effect twice, with the key of `--idempotency-key` or a new one. The signals that
 * stop the program stop the wait for its response. Throws the service's refusal, or an `OutcomeUnknownError`: also if a request with a given key was
 * refused before the key was looked at, because the outcome of an earlier run with it may not be known.
 */
export async function sendKeyed(
  purser: Purser,
  { method, path, ...request }: KeyedRequest,
  { options }: Pick<Args, 'options'>,
  io: Pick<Io, 'untilStopped'>,
): Promise<Keyed> {
  const given = options['idempotency-key']
  const idempotencyKey = given ?? `cli-${randomBytes(16).toString('hex')}`
  const signal = io.untilStopped()
  try {
    const response = await purser.request(method, path, { ...request, idempotencyKey, signal })
    return { response, idempotencyKey }
  } catch (error) {
    const isUnknown = signal.aborted || (error instanceof PurserError && !error.isOutcomeKnown)
    if (isUnknown) throw new OutcomeUnknownError(error, { idempotencyKey, run: 'this' })
    const isBeforeKey = error instanceof PurserError && error.isBeforeKey
    throw isBeforeKey && given !== undefined
      ? new OutcomeUnknownError(error, { idempotencyKey, run: 'earlier' })
      : error
  }
}
