import { instantOf } from '../../platform/clock.ts'
import { batch } from '../../platform/db/batch.ts'
import type { FindKey, Identity } from '../../platform/http/authenticate.ts'
import type { ApiKeyId } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import { listEnded, listKeysByHash, markUsed } from './key-store.ts'
import type { Deps } from './ports.ts'

export interface KeyDirectory {
  readonly findKey: FindKey
  /** Returns those of the keys that were revoked or have expired, for connections that outlive a request. */
  endedKeys(apiKeyIds: readonly ApiKeyId[]): Promise<readonly ApiKeyId[]>
  /** Writes the pending last uses. Called after the last request and before the database closes. */
  stop(): Promise<void>
}

type DirectoryDeps = Pick<Deps, 'db' | 'clock'> & { readonly log?: Log }

/**
 * Finds the identity behind a key's hash. Concurrent requests share one statement and nothing is cached between statements, so a
 * committed revocation applies to every request that begins after it, on every process.
 */
export function createKeyDirectory(deps: DirectoryDeps): KeyDirectory {
  const uses = createUses(deps)
  const find = batch<Uint8Array, Identity | undefined>({ itemsMax: 256, batchesMax: 1 }, async (hashes) => {
    const names = hashes.map((hash) => Buffer.from(hash).toString('hex'))
    const distinct = new Map(names.map((name, index) => [name, hashes[index] ?? new Uint8Array()]))
    const found = new Map<string, Identity>()
    const now = deps.clock.now()
    for (const { keyHash, ...identity } of await listKeysByHash(deps.db, [...distinct.values()], now)) {
      found.set(Buffer.from(keyHash).toString('hex'), identity)
    }
    return names.map((name) => found.get(name))
  })
  return {
    async findKey(keyHash) {
      const identity = await find(keyHash)
      if (identity !== undefined) uses.note(identity.apiKeyId)
      return identity
    },
    endedKeys: (apiKeyIds) => listEnded(deps.db, apiKeyIds, deps.clock.now()),
    stop: uses.flush,
  }
}

const minuteMs = 60_000
const keysRememberedMax = 100_000

/** Records in the background, at most once a minute per key, the minute in which it was used. No request waits for it. */
function createUses(deps: DirectoryDeps): { note(apiKeyId: ApiKeyId): void; flush(): Promise<void> } {
  const noted = new Map<ApiKeyId, number>()
  let pending = new Map<ApiKeyId, Date>()
  let writing: Promise<void> | undefined

  const write = async (): Promise<void> => {
    while (pending.size > 0) {
      const round = pending
      pending = new Map()
      try {
        await markUsed(deps.db, round)
      } catch (error) {
        for (const apiKeyId of round.keys()) noted.delete(apiKeyId)
        deps.log?.warn({ err: error }, 'the last use of API keys could not be stored; it is retried with the next use')
      }
    }
    writing = undefined
  }
  return {
    note(apiKeyId) {
      const minute = Math.floor(deps.clock.now().getTime() / minuteMs)
      if (noted.get(apiKeyId) === minute) return
      if (noted.size >= keysRememberedMax) noted.clear()
      noted.set(apiKeyId, minute)
      pending.set(apiKeyId, instantOf(minute * minuteMs))
      writing ??= write()
    },
    async flush() {
      await writing
    },
  }
}
