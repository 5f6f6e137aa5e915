import { createPublicKey, verify } from 'node:crypto'
import type { SealKey, VerifyEd25519 } from '@purser/protocol'
import { z } from 'zod'
import type { RunningServer } from '../../src/boot.ts'
import type { Config } from '../../src/config.ts'
import { deleteVaultContents, followVaults } from '../../src/features/vaults/index.ts'
import type { Ctx } from '../../src/modules.ts'
import type { Environment } from '../../src/platform/ctx.ts'
import { sql } from '../../src/platform/db/db.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

/** A deployment whose clock moves only when a test moves it, and whose background work runs when a test says so. */
export interface VaultStage {
  readonly world: World
  now(): Date
  /** Moves the clock of every process. */
  pass(ms: number): void
  /** One pass of the lifecycle work in one process. */
  follow(server?: RunningServer): Promise<void>
  /** One pass of the work that deletes the contents of deleted vaults. */
  deleteContents(): Promise<void>
  call(org: Org, method: string, path: string, body?: unknown): Promise<Answer>
  /** Creates a vault and returns its id. */
  vault(org: Org, body?: unknown): Promise<string>
  ctx(org: Org, environment?: Environment): Ctx
}

export const hourMs = 3_600_000

export async function aVaultStage(role: 'api' | 'all' = 'api', own: Partial<Config> = {}): Promise<VaultStage> {
  let now = new Date('2026-06-01T12:00:00Z')
  const world = await aWorld({ config: { role, ...own }, boot: { clock: { now: () => now } } })
  const call = (org: Org, method: string, path: string, body?: unknown) => world.call(org.testKey, method, path, body)
  return {
    world,
    now: () => now,
    pass(ms) {
      now = new Date(now.getTime() + ms)
    },
    follow: (server = world.server) => followVaults.run(systemCtx(server.deps)),
    deleteContents: () => deleteVaultContents.run(systemCtx(world.server.deps)),
    call,
    async vault(org, body = {}) {
      const made = await call(org, 'POST', '/vaults', body)
      if (made.status !== 201) throw new Error(`no vault: ${JSON.stringify(made.body)}`)
      return String(made.body.id)
    },
    ctx: (org, environment = 'test') =>
      forTenant(systemCtx(world.server.deps), { organisationId: org.id, environment }),
  }
}

const EventRow = z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) })

/** The webhook events about an organisation's vaults, in the order of happening. */
export async function reportOf(world: World, org: Org): Promise<readonly z.output<typeof EventRow>[]> {
  return world.database.db.many(
    EventRow,
    sql`select type, payload from events where organisation_id = ${org.id} and type like 'vault.%' order by created_at, ctid`,
  )
}

const StreamRow = EventRow.extend({ sequence: z.number(), id: z.string(), createdAt: z.date() })

/** A vault's stream as its readers get it. */
export async function streamOf(world: World, vaultId: string) {
  const rows = await world.database.db.many(
    StreamRow,
    sql`select sequence, id, type, payload, created_at from vault_events where vault_id = ${vaultId} order by sequence`,
  )
  return rows.map(({ sequence, id, type, payload, createdAt }) => ({
    sequence,
    event: { eventId: id, type, vaultId, timestamp: createdAt.toISOString(), payload },
  }))
}

/** Verifies Ed25519 with Node. */
export const ed25519: VerifyEd25519 = (publicKey, message, signature) => {
  const x = Buffer.from(publicKey).toString('base64url')
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  return verify(null, message, key, signature)
}

const DidDocument = z.object({
  verificationMethod: z.array(z.object({ id: z.string(), publicKeyJwk: z.object({ x: z.string() }) })),
})

/** The service's keys as anybody reads them from its DID document. */
export async function publishedKeys(world: World): Promise<readonly SealKey[]> {
  const document: unknown = await (await fetch(`${world.base}/.well-known/did.json`)).json()
  return DidDocument.parse(document).verificationMethod.map(({ id, publicKeyJwk }) => ({ kid: id, x: publicKeyJwk.x }))
}

const Used = z.object({ kind: z.string(), used: z.bigint() })

/** The current vault counters of the test environment. */
export async function countersOf(world: World, org: Org): Promise<Readonly<Record<string, number>>> {
  const rows = await world.database.db.many(
    Used,
    sql`select kind, used from usage_counters where organisation_id = ${org.id} and environment = 'test'
      and kind in ('activeVaults', 'persistedVaults', 'storageBytes')`,
  )
  const none = { activeVaults: 0, persistedVaults: 0, storageBytes: 0 }
  return { ...none, ...Object.fromEntries(rows.map(({ kind, used }) => [kind, Number(used)])) }
}
