import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { addSanctioned, type DevChain, installSanctionsOracle } from '@purser/devnet'
import { networkByName } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAdmin } from '../../src/admin/run.ts'
import { screeningRecurring } from '../../src/features/wallets/index.ts'
import { isOnHold } from '../../src/features/wallets/screening/next.ts'
import { bundledList } from '../../src/partners/screening/bundled-list.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { aWorld, codeOf, type Org, startChain, type World } from '../world.ts'

const onEthereum = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'
const ronin = '0x098B716B8Aaf21512996dC57EB0615e2383E2f96'
const hourMs = 3_600_000

let chain: DevChain
let world: World
let org: Org
let clock: ShiftedClock
const directory = mkdtempSync(path.join(tmpdir(), 'purser-lists-'))

/** A deployment with the bundled list and one mainnet node, whose oracle is a real contract. */
beforeAll(async () => {
  clock = new ShiftedClock()
  chain = await startChain({ network: 'ethereum' })
  await installSanctionsOracle(chain, onEthereum)
  await addSanctioned(chain, onEthereum, [ronin])
  world = await aWorld({
    config: { role: 'api', sandboxScreening: false, rpcUrls: { ethereum: [chain.rpcUrl] } },
    boot: { clock },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world.stop()
  await chain.stop()
  rmSync(directory, { recursive: true })
})

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

async function statusOf(walletId: string, key = org.testKey): Promise<unknown> {
  return (await world.call(key, 'GET', `/wallet-infra/byo-wallets/${walletId}`)).body.amlStatus
}

async function register(address: string, key = org.testKey): Promise<string> {
  const body = { address, chain: 'base', supportedTokens: ['USDC'] }
  const made = await world.call(key, 'POST', '/wallet-infra/byo-wallets', body)
  expect(made.status).toBe(201)
  return String(made.body.id)
}

async function refresh(addresses: readonly string[]): Promise<string> {
  const file = path.join(directory, 'list.txt')
  const today = new Date(clock.now()).toISOString().slice(0, 10)
  writeFileSync(file, `# list-date: ${today}\n${addresses.join('\n')}\n`)
  const { exitCode, stdout, stderr } = await runAdmin(['refresh-sanctions', '--file', file], {
    DATABASE_URL: world.database.url,
  })
  expect([exitCode, stderr]).toEqual([0, ''])
  return stdout
}

test('while the list is stale a live deposit is on hold until the oracle has answered, and the next from its sender is not', async () => {
  const { deps } = world.server
  const usdc = networkByName('ethereum')?.tokens.find(({ symbol }) => symbol === 'USDC')?.address ?? '0x'
  const request = { chain: 'ethereum', supportedTokens: ['USDC'] }
  const { body: wallet } = await world.call(org.liveKey, 'POST', '/wallet-infra/master-wallets', request)
  const sender = '0x00000000000000000000000000000000000000aa'
  expect(isOnHold(deps.screening.screenNow(sender, 'live'))).toBe(true)
  const now = clock.now()
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    values (${newId('wtx', deps)}, ${org.id}, 'live', ${wallet.id}, 'ethereum', 'ethereum', '0x1', 0, 'in', 'transfer', 'pending',
      ${usdc}, 'USDC', 6, 9, ${sender}, ${wallet.address}, 1, '0x2', ${now}, ${now})`)
  const tenant = { organisationId: org.id, environment: 'live' } as const
  const question = { tenant, walletId: String(wallet.id), network: 'ethereum', token: usdc, upTo: 1n } as const
  const unscreened = async () => (await deps.deposits.amountsOnHold(world.database.db, [question]))[0]?.unscreened
  expect(await unscreened()).toBe(9n)
  await screenWhatIsDue()
  expect(await unscreened()).toBe(0n)
  expect(isOnHold(deps.screening.screenNow(sender, 'live'))).toBe(false)
  const { list } = await world.call(org.liveKey, 'GET', `/wallet-infra/master-wallets/${wallet.id}/transactions`)
  expect(list).toMatchObject([{ amlStatus: 'pending' }])
})

test('from a fresh deployment to a flag that is removed', async () => {
  const wallet = await world.wallet(org)
  const live = await world.wallet(org, { key: org.liveKey, chain: 'ethereum' })
  const sanctioned = await register(bundledList.addresses[7].toUpperCase().replace('0X', '0x'))

  // The bundled list is old: it flags, and it clears nobody.
  await screenWhatIsDue()
  expect([await statusOf(wallet.id), await statusOf(live.id, org.liveKey), await statusOf(sanctioned)]).toEqual([
    'pending',
    'pending',
    'flagged',
  ])
  const ready = await fetch(`${world.base}/readyz`)
  expect(ready.status).toBe(200)
  expect(await ready.json()).toMatchObject({ screening: { list: 'stale', listDate: '2024-09-27' } })

  // The operator loads today's, and pending accounts are screened at once.
  expect(await refresh(bundledList.addresses)).toContain('156 addresses')
  await screenWhatIsDue()
  expect([await statusOf(wallet.id), await statusOf(live.id, org.liveKey)]).toEqual(['clear', 'clear'])
  // The result of a readiness check is repeated for half a second.
  const readiness = async () => (await fetch(`${world.base}/readyz`)).json()
  await expect.poll(readiness).toMatchObject({ screening: { list: 'fresh' } })

  // A later designation is on the next list.
  await refresh([...bundledList.addresses, wallet.address])
  await screenWhatIsDue()
  expect(await statusOf(wallet.id)).toBe('flagged')
  const refused = await world.call(org.testKey, 'POST', '/payments/challenge', {
    walletId: wallet.id,
    resource: 'https://api.example.com/a',
    price: '0.01',
  })
  expect([refused.status, codeOf(refused)]).toEqual([422, 'wallet-flagged'])

  // The designation is removed.
  await refresh(bundledList.addresses)
  await screenWhatIsDue()
  expect(await statusOf(wallet.id)).toBe('clear')
})

test('one chain’s oracle is queried for wallets of every chain, and flags accounts that are not on the list yet', async () => {
  await refresh(bundledList.addresses)
  const [onBase, onArbitrum] = [await world.wallet(org), await world.wallet(org, { chain: 'arbitrum' })]
  await addSanctioned(chain, onEthereum, [onArbitrum.address])
  await screenWhatIsDue()
  expect([await statusOf(onBase.id), await statusOf(onArbitrum.id)]).toEqual(['clear', 'flagged'])
})

test('a deployment whose list was not refreshed for a week becomes pending by itself', async () => {
  await refresh(bundledList.addresses)
  clock.forward(8 * 24 * hourMs)
  const wallet = await world.wallet(org)
  await screenWhatIsDue()
  expect(await statusOf(wallet.id)).toBe('pending')
})
