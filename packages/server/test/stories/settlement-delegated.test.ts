import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { createTestClient, createWalletClient, type Hex, http, publicActions } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aPayer, aWorld, type Org, type Payer, type World } from '../world.ts'

// Payers delegate to code (EIP-7702) after their batch was sent and before a block has it: no look at an account's code comes in time.

let chain: DevChain
let world: World
beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 60_000 } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

/** Code that payers delegate to, by address. */
const delegates: readonly (readonly [Hex, Hex])[] = [
  [`0x${'b1'.repeat(20)}`, '0x5b600056'], // loops until its gas is used up
  [`0x${'b2'.repeat(20)}`, '0x60006000fd'], // reverts
  [`0x${'b3'.repeat(20)}`, '0x61f0006000f3'], // returns 60 KiB
  [`0x${'b4'.repeat(20)}`, '0x5b600056'],
]

async function aShop() {
  const org = await world.organisation()
  const wallet = await world.wallet(org)
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const verified = async (payer: Payer): Promise<Answer> => {
    const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
    const credential = await payer.credential(challenge)
    return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'x402', credential, ...requested })
  }
  return { org, wallet, verified }
}

function settle(org: Org, { body: { paymentId, settlementToken } }: Answer): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
}

function somePayers(count: number): Promise<Payer[]> {
  return Promise.all(Array.from({ length: count }, () => aPayer(chain)))
}

const AttemptsRow = z.object({ state: z.string(), attempts: z.number(), organisationId: z.string() })

test('payers who delegate to code between the batch and its block fail alone: every other payment of the batch is settled by it', async () => {
  const [hostile, honest] = [await aShop(), await aShop()]
  const [attackers, payers, first] = [await somePayers(delegates.length), await somePayers(8), await aPayer(chain)]
  const ofFirst = await honest.verified(first)
  const bad = await Promise.all(attackers.map(hostile.verified))
  const good = await Promise.all(payers.map(honest.verified))
  expect([ofFirst, ...bad, ...good].map(({ status }) => status)).toEqual(Array.from({ length: 13 }, () => 200))

  const anvil = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  await anvil.setAutomine(false)
  const states = () =>
    world.database.db.many(AttemptsRow, sql`select state, attempts, organisation_id from relays order by id`)
  const includes = (count: number) =>
    expect
      .poll(async () => (await states()).filter(({ state }) => state === 'included').length, { timeout: 60_000 })
      .toBe(count)
  // The first transaction is not in a block, so that the next payments share one.
  const settling = [settle(honest.org, ofFirst)]
  await includes(1)
  const settlingBad = bad.map((one) => settle(hostile.org, one))
  const settlingGood = good.map((one) => settle(honest.org, one))
  await includes(13)
  await expect.poll(async () => (await anvil.getTxpoolStatus()).queued, { timeout: 30_000 }).toBe(0)
  await delegateAll(anvil, attackers)
  await anvil.setAutomine(true)

  const answers = await Promise.all([...settling, ...settlingGood])
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(await tokenBalance(chain, 'USDC', honest.wallet.address)).toBe(90_000n)
  const sent = (await states()).filter(({ organisationId }) => organisationId === honest.org.id)
  expect(sent.map(({ attempts }) => attempts)).toEqual(sent.map(() => 1))
  expect((await Promise.all(settlingBad)).map(({ status }) => status)).toEqual(bad.map(() => 409))
  expect(await tokenBalance(chain, 'USDC', hostile.wallet.address)).toBe(0n)
})

/** Mines one block that begins with the delegations of these payers. */
async function delegateAll(anvil: ReturnType<typeof createTestClient>, attackers: readonly Payer[]): Promise<void> {
  for (const [address, bytecode] of delegates) await anvil.setCode({ address, bytecode })
  const sender = privateKeyToAccount(`0x${'42'.repeat(32)}`)
  await anvil.setBalance({ address: sender.address, value: 10n ** 20n })
  const client = createWalletClient({ account: sender, transport: http(chain.rpcUrl) }).extend(publicActions)
  const chainId = await client.getChainId()
  const authorizationList = await Promise.all(
    attackers.map(({ account }, index) => {
      const [address = sender.address] = delegates[index] ?? []
      return account.signAuthorization({ address, chainId, nonce: 0 })
    }),
  )
  const fees = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n, gas: 1_000_000n }
  const hash = await client.sendTransaction({ chain: null, to: sender.address, authorizationList, ...fees })
  await anvil.mine({ blocks: 1 })
  const { blockNumber, transactionIndex } = await client.getTransactionReceipt({ hash })
  expect(transactionIndex).toBe(0)
  const { transactions } = await client.getBlock({ blockNumber })
  expect(transactions.length).toBeGreaterThan(1)
  const codes = await Promise.all(attackers.map(({ account: { address } }) => client.getCode({ address })))
  expect(codes).toEqual(delegates.map(([address]) => `0xef0100${address.slice(2)}`))
}
