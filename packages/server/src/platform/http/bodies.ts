import type { IncomingMessage, ServerResponse } from 'node:http'
import { collectBytes } from '@purser/protocol'
import { failPlatform, Problem } from '../errors.ts'
import { limitBodySilence, limitBodyTime, limitUnreadBody } from './connections.ts'
import { type ChunkRule, CountedRequest, tinyChunksMax } from './counted-request.ts'

const tooManyChunks = (): Problem =>
  failPlatform('bad-request', {
    detail: 'The body has thousands of chunks of a few bytes. Send it with Content-Length, or in larger chunks.',
  })

/** The limits of a body, and the refusal of its request. */
interface BodyRules {
  readonly response: ServerResponse
  /** Returns the pause for tiny chunks of a body that an operation reads while it arrives; undefined for others. */
  readonly pauseFor: ChunkRule['pauseFor'] | undefined
  /** Milliseconds for a complete body, or between two pieces of a streamed one. */
  readonly msMax: number
  /** Milliseconds for which the connection may be silent after a streamed body. */
  readonly silenceMsMax: number
  readonly isAnswered: () => boolean
  /** Sends the refusal and closes the connection. */
  readonly refuse: (problem: Problem) => void
}

/**
 * Limits how long the body of a request may take, as a whole, or between two pieces where an operation streams it, and how many chunks it has.
 */
export function limitBody(raw: IncomingMessage, rules: BodyRules): void {
  const { response, pauseFor, msMax, silenceMsMax, isAnswered, refuse } = rules
  limitUnreadBody(raw, response)
  const refuseChunks = (): void => {
    // The reader of the body sends the response.
    if (raw.listenerCount('error') > 0) raw.emit('error', tooManyChunks())
    else if (isAnswered()) raw.destroy()
    else refuse(tooManyChunks())
  }
  if (raw instanceof CountedRequest) raw.limitTinyChunks({ refuse: refuseChunks, pauseFor })
  if (pauseFor !== undefined) limitBodySilence(raw, msMax, silenceMsMax)
  else {
    limitBodyTime(raw, msMax, () => {
      // The rest of the request is not read, so that nothing else can follow on the connection.
      response.once('finish', () => raw.destroy())
      if (!isAnswered()) refuse(failPlatform('request-timeout'))
      else raw.destroy()
    })
  }
}

/** Reads a whole body into one buffer, which is no larger than the memory that was reserved for it. */
export function readBody(
  {
    headers,
    routeOptions,
  }: { readonly headers: IncomingMessage['headers']; readonly routeOptions: { readonly bodyLimit: number } },
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer) => void,
): void {
  const announced = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
  const limit = routeOptions.bodyLimit
  if (announced !== undefined && announced > limit) {
    done(failPlatform('payload-too-large'))
    return
  }
  const collected = collectBytes({ bytesMax: announced ?? limit, tinyChunksMax }, allocate)
  const stop = (error: Error | null): void => {
    payload.off('data', take).off('end', end).off('error', fail)
    const { buffer, byteOffset, length } = collected.bytes()
    if (error !== null) done(error)
    else if (announced !== undefined && length !== announced) done(failPlatform('bad-request'))
    else done(null, Buffer.from(buffer, byteOffset, length))
  }
  const take = (chunk: Buffer): void => {
    const taken = collected.take(chunk)
    if (taken === 'too-large') stop(failPlatform('payload-too-large'))
    if (taken === 'too-many-chunks') stop(tooManyChunks())
  }
  const end = (): void => stop(null)
  const fail = (error: Error): void => stop(error instanceof Problem ? error : failPlatform('bad-request', {}, error))
  payload.on('data', take).on('end', end).on('error', fail).resume()
}

function allocate(length: number): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafe(length)
}
