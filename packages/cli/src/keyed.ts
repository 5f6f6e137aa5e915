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

  constructor(cause: unknown, idempotencyKey: string) {
    super('The outcome of the request is not known.', { cause })
    this.idempotencyKey = idempotencyKey
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
 * stop the program stop the wait for its response. Throws the service's refusal, or an `OutcomeUnknownError`.
 */
export async function sendKeyed(
  purser: Purser,
  { method, path, ...request }: KeyedRequest,
  { options }: Pick<Args, 'options'>,
  io: Pick<Io, 'untilStopped'>,
): Promise<Keyed> {
  const idempotencyKey = options['idempotency-key'] ?? `cli-${randomBytes(16).toString('hex')}`
  const signal = io.untilStopped()
  try {
    const response = await purser.request(method, path, { ...request, idempotencyKey, signal })
    return { response, idempotencyKey }
  } catch (error) {
    const isUnknown = signal.aborted || (error instanceof PurserError && !error.isOutcomeKnown)
    throw isUnknown ? new OutcomeUnknownError(error, idempotencyKey) : error
  }
}
