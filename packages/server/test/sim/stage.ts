import { tmpdir } from 'node:os'
import { bytesToHex, type Hex, type Network, networkByName } from '@purser/protocol'
import { encodeAbiParameters } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import { createSignatures } from '../../src/chain/recover.ts'
import { createSigner } from '../../src/custody/signer.ts'
import { buildDeps } from '../../src/deps.ts'
import { foundOrganisation, upsertAccount } from '../../src/features/organisations/index.ts'
import type { Deps, Tenant } from '../../src/platform/ctx.ts'
import { type Db, openDb, sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { createLog } from '../../src/platform/log.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import type { TestDatabase } from '../database.ts'
import { oneNanoUsdPerGas, testConfig } from '../test-config.ts'
import { SimChain } from './chain.ts'
import { type Chance, chanceOf } from './chance.ts'
import { makeShares } from './process.ts'
import { type Payer, separatorOf } from './purchase.ts'
import { aSweeper } from './sweeps.ts'

/** What all seeds of a run share: one database, whose clock a test sets, and some organisations. */
export type Stage = Awaited<ReturnType<typeof aStage>>

/** Of those that sell, beside the one that sweeps. */
const organisationCount = 4

/** On a migrated database of its own, which goes with the stage. */
export async function aStage(database: TestDatabase) {
  await setUpClock(database.db)
  // Its connections know the clock, since it is on their search path.
  const db = openDb({ url: database.url, connectionsMax: 24, log: createLog({ level: 'silent' }) })
  const known = networkByName('eth-sepolia')
  if (known === undefined) throw new Error('no such network')
  const network: Network = { ...known, confirmationDepth: 3 }
  const [token] = network.tokens
  if (token === undefined) throw new Error('a network has a token')
  const config = testConfig(database.url, { filesDirectory: tmpdir() })
  const built = await buildDeps(config, { log: createLog({ level: 'silent' }), gasPrices: oneNanoUsdPerGas })
  // The same in every run, so that a seed is the same history again.
  const chance = chanceOf(1)
  const privateKey = chance.bytes(32)
  const signer = await createSigner(async () => Uint8Array.from(privateKey), await createSignatures())
  const [sweeping, ...tenants] = await organisationsIn({
    ...built.deps,
    random: chance,
    clock: { now: () => new Date(Date.UTC(2026, 0, 1)) },
  })
  if (sweeping === undefined) throw new Error('there is no organization')
  const acting = { ...forTenant(systemCtx(built.deps), sweeping), actor: { kind: 'operator' } as const }
  const sweeper = await aSweeper(acting)
  return {
    db,
    sweeper,
    network,
    token,
    signer,
    payers: payersOf(payerCount),
    deps: built.deps,
    tenants,
    setNow: (ms: number) => db.run(sql`select setval('simulated.clock', ${Math.round(ms)}::bigint)`),
    async countLocked() {
      const row = await built.deps.db.one(
        z.object({ count: z.bigint() }),
        sql`select count(distinct pid) as count from pg_locks
        where not granted and pid in (select pid from pg_stat_activity where datname = current_database())`,
      )
      return Number(row.count)
    },
    async clear() {
      for (const table of tables) await db.run({ text: `delete from ${table}`, values: [] })
      await makeShares(db, network)
    },
    async stop() {
      await built.close()
      await db.close()
      await database.drop()
    },
  }
}

/** A chain with the network's token, on which nothing has happened. */
export function aChain(
  stage: Pick<Stage, 'network' | 'token' | 'signer' | 'sweeper'>,
  chance: Chance,
  timestamp: bigint,
): SimChain {
  const rules = {
    token: stage.token.address,
    settler: stage.signer.address,
    constants: constantsOf(stage),
    own: ownOf(stage),
  }
  return new SimChain(rules, chance, { timestamp, depth: stage.network.confirmationDepth })
}

/** Accounts whose keys nobody but the service has. */
function ownOf({ sweeper }: Pick<Stage, 'sweeper'>): ReadonlySet<string> {
  return new Set(sweeper.children.map((child) => child.toLowerCase()))
}

/** What its token says of itself, by the selector of the read. */
function constantsOf({ network, token }: Pick<Stage, 'network' | 'token'>): ReadonlyMap<string, Hex> {
  const { name = '', version = '' } = token.eip712 ?? {}
  const words = (text: string): Hex => encodeAbiParameters([{ type: 'string' }], [text])
  return new Map<string, Hex>([
    ['0x06fdde03', words(name)],
    ['0x54fd4d50', words(version)],
    ['0x3644e515', bytesToHex(separatorOf(network, token))],
    // getEthBalance(address) of Multicall3.
    ['0x4d2301cc', `0x${(10n ** 18n).toString(16).padStart(64, '0')}`],
  ])
}

/** Payers whose signatures the service recovers, the same in every run. */
const payerCount = 48

function payersOf(count: number): readonly Payer[] {
  const chance = chanceOf(0)
  return Array.from({ length: count }, () => {
    const account = privateKeyToAccount(bytesToHex(chance.bytes(32)))
    return { address: account.address, sign: (digest) => account.sign({ hash: bytesToHex(digest) }) }
  })
}

/** In an order in which no row is deleted before those that name it. */
const tables = [
  'payments',
  'reservations',
  'sweep_scans',
  'sweep_transfers',
  'sweeps',
  'relays',
  'relay_queues',
  'relay_turns',
  'transaction_attempts',
  'chain_transactions',
  'lanes',
  'leases',
  'events',
  'usage_counters',
  'gas_budgets',
]

/** The database's own time is what a sequence says: stores ask for it by these names alone. */
async function setUpClock(db: Db): Promise<void> {
  const statements = [
    'create schema simulated',
    'create sequence simulated.clock',
    `create function simulated.now() returns timestamptz language sql stable as 'select to_timestamp(last_value / 1000.0) from simulated.clock'`,
    `create function simulated.clock_timestamp() returns timestamptz language sql stable as 'select to_timestamp(last_value / 1000.0) from simulated.clock'`,
    `do $$ begin execute format('alter database %I set search_path = simulated, public, pg_catalog', current_database()); end $$`,
  ]
  for (const text of statements) await db.run({ text, values: [] })
}

async function organisationsIn(deps: Deps): Promise<readonly Tenant[]> {
  const acting = { ...deps, actor: { kind: 'operator' } as const, requestId: newId('req', deps) }
  const tenants: Tenant[] = []
  for (let count = 0; count <= organisationCount; count += 1) {
    const id = await deps.db.tx(async (tx) => {
      const now = deps.clock.now()
      const email = `${bytesToHex(deps.random.bytes(6))}@example.com`
      const owner = await upsertAccount(tx, {
        id: newId('acc', deps),
        email,
        name: null,
        acceptedAt: now,
        createdAt: now,
      })
      const founding = {
        name: 'Acme',
        type: 'team' as const,
        plan: 'enterprise' as const,
        ownerId: owner.id,
        environments: ['test' as const],
      }
      return (await foundOrganisation(acting, tx, founding)).organisation.id
    })
    tenants.push({ organisationId: id, environment: 'test' })
  }
  return tenants
}
