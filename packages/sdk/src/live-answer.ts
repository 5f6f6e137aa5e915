import { PurserError } from './errors.ts'
import { chunksOf } from './multipart.ts'
import { mayRetry } from './retry.ts'
import { pause } from './transport.ts'

const delayMsFirst = 250
const delayMsMax = 15_000
/** The server sends something every 15 s; silence for longer than this means that the connection is dead. */
const silenceMsMax = 45_000

/** How long to wait before a connection is opened again: up to a quarter less by chance, so that those who were cut off together do not return together. */
export function delayMsAfter(failures: number): number {
  return Math.min(delayMsFirst * 2 ** failures, delayMsMax) * (1 - Math.random() / 4)
}

/** A broken connection, and an answer that is worth asking for again. */
export function isPassing(error: unknown): boolean {
  return error instanceof BrokenStream || (error instanceof PurserError && mayRetry(error))
}

class BrokenStream extends Error {}

/** The stream's text; a connection that breaks, or keeps silent for too long, is a `BrokenStream`. */
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

/** The JSON value of what an event holds; undefined where it is none. */
export function jsonIn(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
