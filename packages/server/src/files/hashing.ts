import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { HashAnswer, HashOrder } from './hash-worker.ts'

/** The SHA-256 of a content that comes in pieces of shared memory, taken in another thread. */
export interface RunningHash {
  /** Resolves when the bytes were read and their memory may be written anew. Pieces count in the order of the calls. */
  update(bytes: Uint8Array): Promise<void>
  /** The digest in hex. Nothing may follow. */
  digest(): Promise<string>
  /** In place of `digest`, for a content that is given up. */
  drop(): void
}

/**
 * A thread that hashes, begun with the first content and there as long as the process; it keeps no process alive that has nothing
 * else to do. Where it dies, the contents in it fail, and the next one begins a new thread.
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
      update: async (bytes) => void (await own.ask({ kind: 'bytes', id, bytes })),
      async digest() {
        const sha256 = await own.ask({ kind: 'end', id })
        if (sha256 === undefined) throw new Error('the thread that hashes gave no digest')
        return sha256
      },
      drop: () => own.tell({ kind: 'drop', id }),
    }
  }
}

/**
 * The thread's program, which stands beside this file with its ending, as source and as published. Types are taken out of it here:
 * a thread that did so itself would hold a compiler of 10 MB for one small file.
 */
function readScript(): URL {
  const ending = path.extname(import.meta.filename)
  const text = readFileSync(path.join(import.meta.dirname, `hash-worker${ending}`), 'utf8')
  return new URL(`data:text/javascript,${encodeURIComponent(ending === '.ts' ? stripTypeScriptTypes(text) : text)}`)
}

const memory = { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 16, codeRangeSizeMb: 0, stackSizeMb: 1 }

class HashThread {
  readonly #worker = new Worker(readScript(), { execArgv: [], resourceLimits: memory })
  /** Asked and not answered yet, oldest first: the thread answers in order. */
  readonly #asked: PromiseWithResolvers<HashAnswer>[] = []
  #death: unknown

  constructor() {
    this.#worker.unref()
    this.#worker.on('message', (answer: HashAnswer) => {
      this.#asked.shift()?.resolve(answer)
      if (this.#asked.length === 0) this.#worker.unref()
    })
    this.#worker.on('error', (cause) => this.#die(cause))
    this.#worker.on('exit', () => this.#die(undefined))
  }

  get isDead(): boolean {
    return this.#death !== undefined
  }

  ask(order: HashOrder): Promise<HashAnswer> {
    if (this.#death !== undefined) return Promise.reject(this.#death)
    const answer = Promise.withResolvers<HashAnswer>()
    if (this.#asked.push(answer) === 1) this.#worker.ref()
    this.#worker.postMessage(order)
    return answer.promise
  }

  tell(order: HashOrder): void {
    if (this.#death === undefined) this.#worker.postMessage(order)
  }

  #die(cause: unknown): void {
    this.#death ??= new Error('the thread that hashes ended', { cause })
    for (const { reject } of this.#asked.splice(0)) reject(this.#death)
  }
}
