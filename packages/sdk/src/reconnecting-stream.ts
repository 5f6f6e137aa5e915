import { PurserError } from './errors.ts'
import { chunksOf } from './multipart.ts'
import { mayRetry } from './retry.ts'
import { pause } from './transport.ts'

const delayMsFirst = 250
const delayMsMax = 15_000
/** The server sends data every 15 s. A longer silence than this means that the connection is dead. */
const silenceMsMax = 45_000

/**
 * The delay before a connection is reopened, in milliseconds. A random part of up to a quarter is subtracted, so that
 * clients that were disconnected together do not reconnect together.
 */
export function delayMsAfter(failures: number): number {
  return Math.min(delayMsFirst * 2 ** failures, delayMsMax) * (1 - Math.random() / 4)
}

/** Whether an error may go away by itself: a broken connection, or a response that is worth a retry. */
export function isPassing(error: unknown): boolean {
  return error instanceof BrokenStream || (error instanceof PurserError && mayRetry(error))
}

class BrokenStream extends Error {}

/** Yields the stream's text. Throws `BrokenStream` if the connection breaks or is silent for too long. */
export async function* textOf(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  const chunks = chunksOf(body)
  try {
    while (true) {
      const { done, value } = await beforeSilence(chunks.next(), signal)
      if (done === true) return
      yield decoder.decode(value, { stream: true })
    }
  } finally {
    body.cancel().catch(() => {})
    chunks.return(undefined).catch(() => {})
  }
}

async function beforeSilence<T>(next: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  const over = new AbortController()
  const ended = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal])
  const silence = pause(silenceMsMax, ended).then(() => Promise.reject(new BrokenStream()))
  try {
    return await Promise.race([next, silence])
  } catch (error) {
    signal?.throwIfAborted()
    throw error instanceof BrokenStream ? error : new BrokenStream()
  } finally {
    silence.catch(() => {})
    next.catch(() => {})
    over.abort()
  }
}

/** The JSON value of an event's data, or undefined if it is not JSON. */
export function jsonIn(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
