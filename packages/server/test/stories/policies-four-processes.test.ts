import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { endEveryService, type Service, serveEnv, startService } from '../crash/service.ts'
import { foundOrganisation } from '../crash/stage.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { type Answer, codeOf, request } from '../world.ts'

const masters = '/wallet-infra/master-wallets'
let database: TestDatabase
let chain: DevChain
let services: readonly Service[]
let key: string

beforeAll(async () => {
  database = await freshDatabase()
  chain = await startChain({ network: 'base-sepolia' })
  key = (await foundOrganisation(database.url)).testKey
  const env = serveEnv(database.url, {
    RPC_URL_BASE_SEPOLIA: chain.rpcUrl,
    RPC_TIMEOUT_MS: '10000',
    TRANSFER_WAIT_MS: '30000',
  })
  services = await Promise.all(Array.from({ length: 4 }, () => startService(env)))
})
afterAll(async () => {
  await endEveryService()
  await chain?.stop()
  await database?.drop()
})

interface Managed {
  readonly id: string
  readonly address: Address
}

function post(turn: number, path: string, body: unknown, method = 'POST'): Promise<Answer> {
  return request(services[turn % services.length]?.base ?? '', { key, method, path, body })
}

async function managed(path: string, body: unknown, rawUsdc: bigint): Promise<Managed> {
  const made = await post(0, path, body)
  const wallet = { id: String(made.body.id), address: made.body.address as Address }
  await fundNative(chain, wallet.address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(chain, 'USDC', wallet.address, rawUsdc)
  return wallet
}

/** The outcome of a transfer: its status, or the rule or the code that refused it. */
function outcomeOf(response: Answer): string {
  const code = codeOf(response)
  return code === 'policy-denied' ? String(response.body.rule) : code || String(response.body.status)
}

/** Sends a transfer until the chain is known: on a slow machine its newest block may not be booked in the time that a request waits. */
async function transfer(turn: number, from: Managed, amount: string): Promise<Answer> {
  const toAddress = privateKeyToAddress(generatePrivateKey())
  const token = { fromToken: 'USDC', toToken: 'USDC', toChain: 'base' }
  const untilMs = Date.now() + 60_000
  for (;;) {
    const response = await post(turn, '/wallet-infra/transfer', { fromWalletId: from.id, toAddress, amount, ...token })
    if (codeOf(response) !== 'chain-unavailable' || Date.now() > untilMs) return response
  }
}

/** The sum of the wallets' balances, in the token's smallest unit. */
async function balanceOfAll(wallets: readonly Managed[]): Promise<bigint> {
  const balances = await Promise.all(wallets.map(({ address }) => tokenBalance(chain, 'USDC', address)))
  return balances.reduce((sum, raw) => sum + raw, 0n)
}

async function reservedBy({ id }: Managed): Promise<bigint> {
  const { raw } = await database.db.one(
    z.object({ raw: z.string().transform(BigInt) }),
    sql`
    select coalesce(sum(atto_amount), 0)::text as raw from policy_reservations where master_wallet_id = ${id} and released_at is null and operation <> 'gas'`,
  )
  return raw
}

test.each(['perHour', 'perDay', 'perMonth'])(
  'two hundred transfers at once at four processes, from a wallet and its children, use a cap %s exactly, to the last unit',
  async (window) => {
    const master = await managed(masters, { chain: 'base', supportedTokens: ['USDC'] }, 40_000_000n)
    const ofMaster = `${masters}/${master.id}/child-addresses`
    const [child, poor] = [await managed(ofMaster, {}, 40_000_000n), await managed(ofMaster, {}, 0n)]
    const wallets = [master, child]
    // 31 quarters, and one unit less than a 32nd.
    const caps = { perTransaction: '1', [window]: '7.999999' }
    const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: caps } }
    expect((await post(0, `${masters}/${master.id}/policy`, policy, 'PUT')).status).toBe(200)
    const wishes = Array.from({ length: 200 }, (_, n) =>
      n % 5 === 3
        ? ([poor, '0.25'] as const)
        : ([wallets[n % 2] ?? master, n % 5 === 4 ? '1.000001' : '0.25'] as const),
    )
    const answers = await Promise.all(wishes.map(([from, amount], n) => transfer(n, from, amount)))
    const counts = Map.groupBy(answers, outcomeOf)
    const reported = Object.fromEntries([...counts].map(([outcome, some]) => [outcome, some.length]))
    expect(reported).toEqual({ confirmed: 31, [window]: 89, perTransaction: 40, 'insufficient-balance': 40 })
    expect(80_000_000n - (await balanceOfAll(wallets))).toBe(31n * 250_000n)
    expect(await reservedBy(master)).toBe(31n * 25n * 10n ** 16n)

    const rest = await Promise.all(
      Array.from({ length: 8 }, (_, n) => transfer(n, wallets[n % 2] ?? master, '0.249999')),
    )
    expect(rest.map(outcomeOf).sort()).toEqual(['confirmed', ...Array(7).fill(window)])
    expect(80_000_000n - (await balanceOfAll(wallets))).toBe(7_999_999n)
    expect(outcomeOf(await transfer(0, child, '0.000001'))).toBe(window)
  },
)
