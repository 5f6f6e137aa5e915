import { type Config, type ConfigFault, readWitnessPlace } from '../config.ts'
import type { KeySources } from '../custody/index.ts'
import { readKeySettings } from '../key-settings.ts'
import type { Environment } from '../platform/ctx.ts'

/** What admin commands need of the environment: far less than serving does. */
export interface AdminSettings {
  readonly databaseUrl: string
  /** The environments that the deployment serves, as `ENVIRONMENTS` says. */
  readonly environments: readonly Environment[]
  /** Where the key-encryption keys are; undefined when the environment does not say it well, which only commands on keys mind. */
  readonly keys: KeySources | undefined
  /** Where the marks of the witness are; undefined when the environment does not say it well. */
  readonly witness: Config['files'] | undefined
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
  return { databaseUrl, environments, keys: readKeys(env), witness: readWitnessPlace(env) }
}

/** As `purser serve` reads them. */
function readKeys(env: Readonly<Record<string, string | undefined>>): KeySources | undefined {
  const faults: ConfigFault[] = []
  const keys = readKeySettings(env, faults)
  return faults.length === 0 ? keys : undefined
}
