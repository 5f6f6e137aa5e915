import type { KeySource } from '../custody/index.ts'
import type { Environment } from '../platform/ctx.ts'

/** What admin commands need of the environment: far less than serving does. */
export interface AdminSettings {
  readonly databaseUrl: string
  /** The environments that the deployment serves, as `ENVIRONMENTS` says. */
  readonly environments: readonly Environment[]
  /** Where the key-encryption key is; undefined when the environment does not say, which only commands on keys mind. */
  readonly keySource: KeySource | undefined
}

/** Reads the settings, or says in one sentence what is missing and how to set it. */
export function readAdminSettings(env: Readonly<Record<string, string | undefined>>): AdminSettings | string {
  const databaseUrl = env.DATABASE_URL ?? ''
  if (!/^postgres(ql)?:\/\//.test(databaseUrl)) {
    return 'DATABASE_URL is missing: set it to the address of the deployment’s PostgreSQL, such as postgres://purser:…@db.internal:5432/purser'
  }
  const names = (env.ENVIRONMENTS ?? 'test,live').split(',').map((name) => name.trim())
  const environments = names.filter((name): name is Environment => name === 'test' || name === 'live')
  if (environments.length !== names.length) return 'ENVIRONMENTS is not usable: set it to test, live or test,live'
  return { databaseUrl, environments, keySource: readKeySource(env) }
}

/** As `purser serve` reads them: the file first. */
function readKeySource(env: Readonly<Record<string, string | undefined>>): KeySource | undefined {
  const { KEY_ENCRYPTION_KEY_FILE: file = '', KEY_ENCRYPTION_KEY: base64 = '' } = env
  if (file !== '') return { file }
  return base64 === '' ? undefined : { base64 }
}
