import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HashOrder, HashResult } from './hash-worker.ts'

/** The SHA-256 of content in chunks of shared memory, computed in another thread. */
export interface RunningHash {
  /** Resolves when the bytes were read and their memory can be reused. Chunks are hashed in the order of the calls. */
  update(bytes: Uint8Array): Promise<void>
  /** The digest in hex. No calls may follow. */
  digest(): Promise<string>
  /** Call it instead of `digest` for abandoned content. */
  drop(): void
}

/**
 * Creates hashes that run in a shared thread. The thread starts with the first content and does not keep the process alive. When it crashes, its
 * contents fail, and the next content starts a new thread.
 */
export function createHashing(): () => RunningHash {
  let thread: HashThread | undefined
  let lastId = 0
  return () => {
    if (thread === undefined || thread.isDead) thread = new HashThread()
    const own = thread
    lastId += 1
    const id = lastId
    return {
      update: async (bytes) => void (await own.request({ kind: 'bytes', id, bytes })),
      async digest() {
        const sha256 = await own.request({ kind: 'end', id })
        if (sha256 === undefined) throw new Error('the hashing thread returned no digest')
        return sha256
      },
      drop: () => own.notify({ kind: 'drop', id }),
    }
  }
}

/**
 * The thread's program, next to this file and with the same extension, in source and published form. Types are stripped here, because doing it in
 * the thread would load a 10 MB compiler there.
 */
function readScript(): URL {
  const ending = path.extname(import.meta.filename)
  const text = readFileSync(path.join(import.meta.dirname, `hash-worker${ending}`), 'utf8')
  return new URL(`data:text/javascript,${encodeURIComponent(ending === '.ts' ? stripTypeScriptTypes(text) : text)}`)
}

const memory = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, codeRangeSizeMb: 0, stackSizeMb: 1 }

class HashThread {
  readonly #worker = new Worker(readScript(), { execArgv: [], resourceLimits: memory })
  /** Pending requests, oldest first; the thread answers in order. */
  readonly #pending: PromiseWithResolvers<HashResult>[] = []
  #death: unknown

  constructor() {
    this.#worker.unref()
    this.#worker.on('message', (response: HashResult) => {
      this.#pending.shift()?.resolve(response)
      if (this.#pending.length === 0) this.#worker.unref()
    })
    this.#worker.on('error', (cause) => this.#die(cause))
    this.#worker.on('exit', () => this.#die(undefined))
  }

  get isDead(): boolean {
    return this.#death !== undefined
  }

  request(order: HashOrder): Promise<HashResult> {
    if (this.#death !== undefined) return Promise.reject(this.#death)
    const response = Promise.withResolvers<HashResult>()
    if (this.#pending.push(response) === 1) this.#worker.ref()
    this.#worker.postMessage(order)
    return response.promise
  }

  notify(order: HashOrder): void {
    if (this.#death === undefined) this.#worker.postMessage(order)
  }

  #die(cause: unknown): void {
    this.#death ??= new Error('the hashing thread ended', { cause })
    for (const { reject } of this.#pending.splice(0)) reject(this.#death)
  }
}
