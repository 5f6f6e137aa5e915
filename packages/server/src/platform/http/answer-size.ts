import type { ServerResponse } from 'node:http'
import type { Caller } from '../ctx.ts'
import type { BoundOperation } from '../operation.ts'
import { createMemoryBudget } from '../share.ts'
import { problemAnswer } from './call.ts'
import type { RawAnswer } from './success-answer.ts'

/** Bytes that a caller is sent for each token: about one millisecond of CPU. */
const bytesPerToken = 65_536
/** Most bytes of a response whose memory is not counted: the buffers of its connection take it. */
const uncountedBytesMax = 8_192

interface Answered {
  readonly ctx: Parameters<typeof problemAnswer>[0]
  readonly caller: Pick<Caller, 'placeOwner'>
  readonly operation: Pick<BoundOperation, 'method'>
  readonly answer: RawAnswer
  /** Takes tokens of the limits that the request counted in. */
  readonly owe: (cost: number) => void
  readonly sending: Pick<ServerResponse, 'destroyed'> & { once(event: 'close', listener: () => void): unknown }
}

/** Counts a response, and returns it or the refusal that is sent in its place. */
export type LimitAnswer = (answered: Answered) => RawAnswer

/**
 * Returns the function that counts what is sent. A response costs a token for each 64 KiB that were read for it, and the tokens beyond the
 * first are owed: the caller's next requests wait for them. The memory of responses that their callers have not read yet is limited, and an
 * organization may have half of what the others leave; beyond it a `GET` is refused with 429, without memory with 503. What another request
 * has changed is always reported. A response larger than half of the limit counts as half, so that it can be sent while others have nothing.
 */
export function createAnswerLimits(bytesMax: number): LimitAnswer {
  const reserve = createMemoryBudget(bytesMax)
  return ({ ctx, caller, operation, answer, owe, sending }) => {
    const bytes = bytesOf(answer.body)
    const cost = Math.ceil((answer.bytesRead ?? bytes) / bytesPerToken) - 1
    if (cost > 0) owe(cost)
    if (bytes <= uncountedBytesMax || operation.method !== 'GET' || sending.destroyed) return answer
    try {
      sending.once('close', reserve(caller.placeOwner, Math.min(bytes, bytesMax / 2)))
      return answer
    } catch (error) {
      return problemAnswer(ctx, error)
    }
  }
}

/** Returns the bytes of a body in memory; none for a stream, which is sent as fast as it is read. */
function bytesOf(body: RawAnswer['body']): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body instanceof Uint8Array ? body.byteLength : 0
}
