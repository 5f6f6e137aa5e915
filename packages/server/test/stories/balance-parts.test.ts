import { randomBytes } from 'node:crypto'
import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { type Address, networkByName, parseAmount, tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { screeningRecurring } from '../../src/features/wallets/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { aWorld, type Org, type World } from '../world.ts'

/** No background work: a test says when a sender is screened, and accepted transfers stay `pending`. */
let chain: DevChain
let world: World
let org: Org
let screening: FakeScreening

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  const clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  const config = { role: 'api', transferWaitMs: 0 } as const
  world = await aWorld({ chains: [chain], config, boot: { clock, screening } })
})
beforeEach(async () => {
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const masters = '/wallet-infra/master-wallets'
const stranger = (): Address => `0x${randomBytes(20).toString('hex')}`

/** A new master or child address with 10 USDC and 1 ETH. */
async function aWallet(path = masters) {
  const body = path === masters ? { chain: 'base', supportedTokens: ['USDC'] } : {}
  const created = await world.call(org.testKey, 'POST', path, body)
  const wallet = { id: String(created.body.id), address: created.body.address as Address }
  await fundNative(chain, wallet.address, 10n ** 18n)
  await fundToken(chain, 'USDC', wallet.address, 10_000_000n)
  return wallet
}

/** A deposit that the watcher has just seen; the money itself is there already. */
async function seen(walletId: string, rawAmount: bigint, from = stranger()): Promise<void> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const now = world.server.deps.clock.now()
  const network = networkByName(chain.network)
  const token = network && tokenBySymbol(network, 'USDC')?.address
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    values (${newId('wtx', world.server.deps)}, ${org.id}, 'test', ${walletId}, ${chain.network}, 'base', ${hash}, 0, 'in', 'transfer',
      'pending', ${token}, 'USDC', 6, ${rawAmount.toString()}, ${from}, ${from}, 1, ${hash}, ${now}, ${now})`)
}

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

interface Row {
  readonly tokenSymbol: string
  readonly formattedBalance: string
  readonly parts: Readonly<Record<string, string>>
}

const balancesOf = async (path: string, query = '') =>
  (await world.call(org.testKey, 'GET', `${path}/balances${query}`)).list as unknown as readonly Row[]

function unitsOf(amount = ''): bigint {
  const units = parseAmount(amount, 18)
  if (typeof units !== 'bigint') throw new Error(`${amount} is not an amount`)
  return units
}

function partsOf(rows: readonly Row[], symbol: string): Readonly<Record<string, string>> {
  const row = rows.find(({ tokenSymbol }) => tokenSymbol === symbol)
  if (row === undefined) throw new Error(`no balance of ${symbol}`)
  const sum = Object.values(row.parts).reduce((total, part) => total + unitsOf(part), 0n)
  expect(sum, `the parts of ${symbol} add up to its balance`).toBe(unitsOf(row.formattedBalance))
  return row.parts
}

async function send(fromWalletId: string, amount: string): Promise<number> {
  const moved = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', toAddress: stranger() }
  return (await world.call(org.testKey, 'POST', '/wallet-infra/transfer', { fromWalletId, amount, ...moved })).status
}

test('a balance shows what can be sent, what an open transfer reserves, and what waits for screening or is frozen', async () => {
  const master = await aWallet()
  const at = `${masters}/${master.id}`
  const before = await balancesOf(at, '?spendable=true')
  expect(partsOf(before, 'USDC')).toEqual({
    available: '10',
    reserved: '0',
    unscreened: '0',
    frozen: '0',
    notFinal: '0',
  })
  expect(partsOf(before, 'ETH')).toEqual({ available: '1', reserved: '0', unscreened: '0', frozen: '0', notFinal: '0' })

  const flagged = stranger()
  screening.setResult(flagged, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  await seen(master.id, 1_500_000n, flagged)
  await screenWhatIsDue()
  await seen(master.id, 3_000_000n)
  expect(await send(master.id, '2.25')).toBe(201)

  const rows = await balancesOf(at, '?spendable=true')
  const usdc = { available: '3.25', reserved: '2.25', unscreened: '3', frozen: '1.5', notFinal: '0' }
  expect(partsOf(rows, 'USDC')).toEqual(usdc)
  const coin = partsOf(rows, 'ETH')
  expect(unitsOf(coin.reserved), 'the gas of the transfer is reserved').toBeGreaterThan(0n)
  expect(
    [await send(master.id, '3.250001'), await send(master.id, '3.25')],
    'exactly the available part can be sent',
  ).toEqual([422, 201])
})

test('the parts of a child address are its own', async () => {
  const master = await aWallet()
  const child = await aWallet(`${masters}/${master.id}/child-addresses`)
  await seen(child.id, 4_000_000n)
  expect(await send(master.id, '2')).toBe(201)
  const rows = await balancesOf(`${masters}/${master.id}/child-addresses/${child.id}`, '?spendable=true')
  const usdc = { available: '6', reserved: '0', unscreened: '4', frozen: '0', notFinal: '0' }
  expect(partsOf(rows, 'USDC')).toEqual(usdc)
})

test('without the query, and with spendable=false, a balance has no parts; another value is refused', async () => {
  const master = await aWallet()
  const at = `${masters}/${master.id}`
  const plain = [
    { tokenSymbol: 'ETH', formattedBalance: '1', rawBalance: '1000000000000000000', chain: 'base' },
    { tokenSymbol: 'USDC', formattedBalance: '10', rawBalance: '10000000', chain: 'base' },
  ]
  expect(await balancesOf(at)).toEqual(plain)
  expect(await balancesOf(at, '?spendable=false')).toEqual(plain)
  expect((await world.call(org.testKey, 'GET', `${at}/balances?spendable=yes`)).status).toBe(422)
})
