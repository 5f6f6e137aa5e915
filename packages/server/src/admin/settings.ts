import type { KeptDays } from '../archive/plan.ts'
import { type Config, isPostgresUrl, poolers, readPlaces } from '../config.ts'
import type { KeySources } from '../custody/index.ts'
import { readKeySettings } from '../key-settings.ts'
import type { ConfigFault } from '../platform/config-fault.ts'
import type { Environment } from '../platform/ctx.ts'
import type { Pooler } from '../platform/db/db.ts'
import { createReader, readKeptDays } from '../settings.ts'

/** Environment settings of admin commands: a small part of those for serving. */
export interface AdminSettings {
  /** `DATABASE_DIRECT_URL`, or else `DATABASE_URL`. */
  readonly databaseUrl: string
  /** The pooler between this address and PostgreSQL. */
  readonly databasePooler: Pooler
  /** The environments that the deployment serves, from `ENVIRONMENTS`. */
  readonly environments: readonly Environment[]
  /** From `PAYMENTS_KEPT_DAYS` and `AUDIT_LOG_KEPT_DAYS`. */
  readonly keptDays?: KeptDays | undefined
  /** Public base address of the deployment, without a trailing slash; undefined if `BASE_URL` is missing or invalid. */
  readonly baseUrl: string | undefined
  /** The places of the key-encryption keys; undefined if the setting is missing or invalid. Only key commands then fail. */
  readonly keys: KeySources | undefined
  /** The place of the witness's marks; undefined if the setting is missing or invalid. */
  readonly witness?: Config['files'] | undefined
  /** The place of the files; undefined if the setting is missing or invalid. */
  readonly files?: Config['files'] | undefined
}

/** Reads the settings. Returns a sentence that names the missing setting, and how to set it, if one is missing. */
export function readAdminSettings(env: Readonly<Record<string, string | undefined>>): AdminSettings | string {
  const { DATABASE_DIRECT_URL: direct = '', DATABASE_POOLER: pooler = '' } = env
  if (direct !== '' && !isPostgresUrl(direct))
    return 'DATABASE_DIRECT_URL is not usable: set it to the address of PostgreSQL itself, or leave it out'
  const databasePooler = direct === '' && pooler !== '' ? poolers.find((one) => one === pooler) : 'none'
  if (databasePooler === undefined) return `DATABASE_POOLER is not usable: set it to one of ${poolers.join(', ')}`
  const databaseUrl = direct || (env.DATABASE_URL ?? '')
  if (!isPostgresUrl(databaseUrl)) {
    return 'DATABASE_URL is missing: set it to the address of the deployment’s PostgreSQL, such as postgres://purser:…@db.internal:5432/purser'
  }
  const names = (env.ENVIRONMENTS ?? 'test,live').split(',').map((name) => name.trim())
  const environments = names.filter((name): name is Environment => name === 'test' || name === 'live')
  const faults: ConfigFault[] = []
  const read = createReader(env, faults)
  const keptDays = {
    payments: readKeptDays(read, 'PAYMENTS_KEPT_DAYS'),
    audit_log: readKeptDays(read, 'AUDIT_LOG_KEPT_DAYS'),
  }
  if (faults.length > 0) return `${faults[0]?.name} is not usable: ${faults[0]?.how}`
  if (environments.length !== names.length) return 'ENVIRONMENTS is not usable: set it to test, live or test,live'
  return {
    databaseUrl,
    databasePooler,
    environments,
    keptDays,
    baseUrl: readBaseUrl(env.BASE_URL),
    keys: readKeys(env),
    ...readPlaces(env),
  }
}

function readBaseUrl(value = ''): string | undefined {
  return /^https?:\/\/./.test(value) && URL.canParse(value) ? value.replace(/\/+$/, '') : undefined
}

/** Reads the key settings as `purser serve` does. */
function readKeys(env: Readonly<Record<string, string | undefined>>): KeySources | undefined {
  const faults: ConfigFault[] = []
  const keys = readKeySettings(env, faults)
  return faults.length === 0 ? keys : undefined
}
