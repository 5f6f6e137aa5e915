import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import { instantOf } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import type { Db } from '../platform/db/db.ts'
import type { Log } from '../platform/log.ts'
import { type DatedKeyRow, listKeysSince, type SealedKeyRow } from './store.ts'

/** HMAC-SHA256 under one of a tenant's keys, as base64url. */
type Mac = (text: string) => string

export interface MppMacs {
  /** Makes the ids of new challenges. */
  readonly current: Mac
  /** Each may have made a challenge that is still valid. */
  readonly all: readonly Mac[]
  /** Each made challenges that have all expired, to which a payment that was already sent may still be shown. */
  readonly retired: readonly Mac[]
}

/** The keys for MPP challenge ids. */
export interface MppSecrets {
  /** The tenant's keys, derived from the service's secrets. No other tenant's challenge verifies with them. */
  macs(tenant: Tenant): Promise<MppMacs>
}

export interface MppSecretsOptions {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly mppChallengeSeconds: number
  readonly openKey: (row: SealedKeyRow) => Promise<Uint8Array>
}

/** Longest age of the cached list of secrets. */
const reloadMs = 10_000
/**
 * A new secret is used only after every process has loaded it; others would refuse its ids. Twice the reload time, to allow for clock differences.
 */
const announcedMs = 2 * reloadMs
/** Added to the challenge lifetime for a retired secret, because it is used until the new one is announced and because clocks differ. */
const retiredMarginSeconds = 60
/** Days for which a retired secret proves to which challenge money was sent. The payer may show its payment late. */
const sentDays = 7
/** Most tenants with cached keys; the cache is cleared beyond that. */
const tenantsMax = 10_000

interface Secret {
  readonly row: DatedKeyRow
  readonly key: KeyObject
}

/**
 * Caches the valid secrets: the current one, and retired ones to whose challenges a payment may still be shown. Detects a rotation within 10 s and
 * unseals each secret once.
 */
export function createMppSecrets(options: MppSecretsOptions): MppSecrets & { load(): Promise<void> } {
  const opened = new Map<string, KeyObject>()
  const byTenant = new Map<string, MppMacs>()
  let secrets: readonly Secret[] = []
  let loadedAtMs = Number.NEGATIVE_INFINITY
  let chosen = ''
  let loading: Promise<void> | undefined

  const load = async (): Promise<void> => {
    const nowMs = options.clock.now().getTime()
    const rows = await listKeysSince(options.db, 'mpp-challenge', instantOf(nowMs - sentDays * 86_400_000))
    secrets = await Promise.all(rows.map(async (row) => ({ row, key: await openOnce(opened, row, options) })))
    for (const kid of opened.keys()) if (!rows.some((row) => row.kid === kid)) opened.delete(kid)
    loadedAtMs = nowMs
    byTenant.clear()
    const kids = rows.map(({ kid }) => kid).join(' ')
    if (chosen !== '' && chosen !== kids) options.log.info({ kids }, 'the MPP secrets changed')
    chosen = kids
  }
  const reload = (): Promise<void> => {
    loading ??= load().finally(() => {
      loading = undefined
    })
    return loading
  }
  return {
    load,
    async macs(tenant) {
      const ageMs = options.clock.now().getTime() - loadedAtMs
      if (ageMs >= reloadMs || ageMs < 0) await reload()
      const name = `${tenant.organisationId}/${tenant.environment}`
      const known = byTenant.get(name)
      if (known !== undefined) return known
      if (byTenant.size >= tenantsMax) byTenant.clear()
      const usedAfterMs = loadedAtMs - (options.mppChallengeSeconds + retiredMarginSeconds) * 1000
      const made = derive(secrets, name, { nowMs: loadedAtMs, usedAfterMs })
      byTenant.set(name, made)
      return made
    },
  }
}

async function openOnce(
  opened: Map<string, KeyObject>,
  row: DatedKeyRow,
  { openKey }: MppSecretsOptions,
): Promise<KeyObject> {
  const known = opened.get(row.kid)
  if (known !== undefined) return known
  const secret = await openKey(row)
  try {
    const key = createSecretKey(secret)
    opened.set(row.kid, key)
    return key
  } finally {
    secret.fill(0)
  }
}

/** Secrets that were retired before `usedAfterMs` made no challenge that is still valid. */
function derive(
  secrets: readonly Secret[],
  name: string,
  { nowMs, usedAfterMs }: { readonly nowMs: number; readonly usedAfterMs: number },
): MppMacs {
  const announced = secrets.find(({ row }) => row.createdAt.getTime() + announcedMs <= nowMs) ?? secrets.at(-1)
  if (announced === undefined) throw new Error('there is no current MPP secret')
  const macs = new Map(secrets.map((secret) => [secret, macOf(secret.key, name)]))
  const [all = [], retired = []] = [true, false].map((isUsed) =>
    [...macs].flatMap(([{ row }, mac]) =>
      (row.retiredAt === null || row.retiredAt.getTime() > usedAfterMs) === isUsed ? [mac] : [],
    ),
  )
  return { current: macs.get(announced) ?? macOf(announced.key, name), all, retired }
}

function macOf(secret: KeyObject, name: string): Mac {
  const key = createSecretKey(createHmac('sha256', secret).update(name).digest())
  return (text) => createHmac('sha256', key).update(text).digest('base64url')
}
