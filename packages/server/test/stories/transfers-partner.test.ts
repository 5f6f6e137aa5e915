import { fundNative, fundToken, sandboxPoolAddress, tokenBalance } from '@purser/devnet'
import { type Address, networkByName } from '@purser/protocol'
import { createPublicClient, createTestClient, createWalletClient, http, pad, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { fail as partnerFails } from '../../src/partners/errors.ts'
import { sql } from '../../src/platform/db/db.ts'
import { auditedActions } from '../audited.ts'
import {
  aPartnerStage,
  bridgeOf,
  masters,
  type PartnerStage,
  partners,
  path,
  stranger,
  swapOf,
} from '../partner-stage.ts'
import { aWorld } from '../world.ts'

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())
afterEach(() => ethereumNode().setAutomine(true))

function ethereumNode() {
  return createTestClient({ mode: 'anvil', transport: http(stage.ethereum.rpcUrl) })
}

test('the coin is swapped for dollars at the named recipient, and the answer has the amount received', async () => {
  const body = swapOf(await stage.aMaster(0n))
  const sent = await stage.send(body)
  const arrived = await tokenBalance(stage.base, 'USDC', body.toAddress)
  expect([sent.status, sent.body.status, sent.body.route]).toEqual([201, 'confirmed', 'partner-swap'])
  expect(arrived).toBeGreaterThan(25_000_000n)
  expect(sent.body.toAmount).toBe((Number(arrived) / 1e6).toString())
  expect(sent.body.routeReason).toMatch(/the test environment uses the sandbox/)
  await expect.poll(async () => stage.eventsOf(sent.body.id)).toEqual([])
})

test('a token is sold to the unit for the coin, and no allowance remains', async () => {
  const master = await stage.aMaster()
  const body = swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '30' })
  const sent = await stage.send(body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(70_000_000n)
  const came = await stage.coinOf(body.toAddress)
  expect(came).toBeGreaterThan(9n * 10n ** 15n)
  expect(sent.body.toAmount).toBe((await stage.get(sent)).toAmount)
  expect(BigInt(Math.round(Number(sent.body.toAmount) * 1e9))).toBe((came + 5n * 10n ** 8n) / 10n ** 9n)
  const allowed = await createPublicClient({ transport: http(stage.base.rpcUrl) }).readContract({
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    abi: [
      {
        type: 'function',
        name: 'allowance',
        stateMutability: 'view',
        inputs: [{ type: 'address' }, { type: 'address' }],
        outputs: [{ type: 'uint256' }],
      },
    ],
    functionName: 'allowance',
    args: [master.address, sandboxPoolAddress],
  })
  expect(allowed).toBe(0n)
})

test('a bridge is pending in the answer, pays out on the other chain, and its end is published once', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master)
  const sent = await stage.send(body)
  expect([sent.status, sent.body.status, sent.body.route, sent.body.toAmount]).toEqual([
    201,
    'pending',
    'partner-bridge',
    '49.95',
  ])
  expect(sent.body.txHash).toMatch(/^0x/)
  expect(sent.body.routeReason).toMatch(/Sandbox keeps 0\.05 USDC/)
  // Money that has left the wallet is not counted as reserved as well.
  expect((await stage.send(bridgeOf(master))).status).toBe(201)
  await stage.relayer.pass()
  const end = await stage.ended(sent)
  expect(end).toMatchObject({ status: 'confirmed', toAmount: '49.95', receivedToken: null })
  expect(end.destinationTxHash).toMatch(/^0x[0-9a-f]{64}$/)
  expect(await tokenBalance(stage.ethereum, 'USDC', body.toAddress)).toBe(49_950_000n)
  await expect
    .poll(async () => (await stage.eventsOf(sent.body.id)).map(({ type, payload }) => [type, payload.toAmount]))
    .toEqual([['transfer.completed', '49.95']])
})

test('a bridge that refunds is a failure with the money back, published once the refund is seen', async () => {
  const master = await stage.aMaster()
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '50' } } }
  expect((await stage.world.call(stage.org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)).status).toBe(200)
  const sent = await stage.send(bridgeOf(master))
  stage.relayer.setConduct('fail')
  await stage.relayer.pass()
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe('failed')
  expect((await stage.get(sent)).status, 'the refund is waited for').toBe('pending')
  expect(await stage.eventsOf(sent.body.id)).toEqual([])
  stage.relayer.setConduct('refund')
  await stage.relayer.pass()
  const refundTxHash = expect.stringMatching(/^0x[0-9a-f]{64}$/)
  expect(await stage.ended(sent)).toMatchObject({ status: 'failed', reason: 'refunded', refundTxHash })
  expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(100_000_000n)
  const reserved = await stage.world.database.db.many(
    z.object({ isReleased: z.boolean() }),
    sql`select released_at is not null as is_released from policy_reservations where master_wallet_id = ${master.id} and operation <> 'gas'`,
  )
  expect(reserved, 'the policy no longer counts it').toEqual([{ isReleased: true }])
  const [reported, ...more] = await stage.eventsOf(sent.body.id)
  expect([reported?.type, reported?.payload.reason, more]).toEqual(['transfer.failed', 'refunded', []])
  expect(reported?.payload.refundedAt).toEqual(expect.any(String))
})

test('a bridge that stalls is waited for, and one that delivers less reports the amount received', async () => {
  const master = await stage.aMaster()
  const body = bridgeOf(master)
  const sent = await stage.send(body)
  stage.relayer.setConduct('stall')
  await stage.relayer.pass()
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe('deposited')
  expect((await stage.get(sent)).status).toBe('pending')
  stage.relayer.setConduct('less')
  await stage.relayer.pass()
  const end = await stage.ended(sent)
  const arrived = await tokenBalance(stage.ethereum, 'USDC', body.toAddress)
  expect(arrived).toBeLessThan(30_000_000n)
  expect([end.status, Number(end.toAmount)]).toEqual(['confirmed', Number(arrived) / 1e6])
})

test('a partner that vanishes, or answers an undocumented status, is waited for, and the end comes when it answers again', async () => {
  const master = await stage.aMaster()
  let requested = 0
  stage.conduct = {
    status: async (own) => {
      requested += 1
      if (requested < 3) throw partnerFails('partner-unavailable')
      if (requested < 5) return { state: 'pending', partnerStatus: 'teleported', isUnknown: true }
      return own()
    },
  }
  const sent = await stage.send(bridgeOf(master))
  await stage.relayer.pass()
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(requested).toBeGreaterThanOrEqual(5)
})

test('delivery of another token than requested is recorded and published', async () => {
  const master = await stage.aMaster()
  const toAddress = stranger()
  const payer = createWalletClient({ transport: http(stage.ethereum.rpcUrl) })
  const [account] = await payer.getAddresses()
  if (account === undefined) throw new Error('the node has no account')
  const destinationTxHash = await payer.sendTransaction({ account, to: toAddress, value: 10n ** 16n, chain: null })
  stage.conduct = {
    status: async () => ({
      state: 'completed',
      partnerStatus: 'PARTIAL',
      destinationTxHash,
      received: {
        chainId: stage.ethereum.chainId,
        token: '0x0000000000000000000000000000000000000000',
        rawAmount: 10n ** 16n,
        isOther: true,
      },
    }),
  }
  const sent = await stage.send(bridgeOf(master, { toAddress }))
  const other = { receivedToken: 'ETH', toAmount: '0.01', destinationTxHash }
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', ...other })
  expect((await stage.eventsOf(sent.body.id))[0]).toMatchObject({ type: 'transfer.completed', payload: other })
})

test('a claimable delivery is claimed once from the master, when it has gas there', async () => {
  const master = await stage.aMaster()
  const claimed = stranger()
  let isDelivered = false
  stage.conduct = {
    status: async () => {
      isDelivered ||=
        (await createPublicClient({ transport: http(stage.ethereum.rpcUrl) }).getTransactionCount({
          address: master.address,
        })) > 0
      if (isDelivered) return { state: 'completed', partnerStatus: 'complete', message: pad(claimed) }
      return {
        state: 'claimable',
        partnerStatus: 'complete',
        call: { chainId: stage.ethereum.chainId, to: claimed, value: 0n, data: '0x' },
      }
    },
  }
  const sent = await stage.send(bridgeOf(master))
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe('complete: no gas to claim')
  expect((await stage.get(sent)).status).toBe('pending')
  await fundNative(stage.ethereum, master.address, 10n ** 18n)
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '49.95' })
  expect(
    await createPublicClient({ transport: http(stage.ethereum.rpcUrl) }).getTransactionCount({
      address: master.address,
    }),
  ).toBe(1)
})

test('a master with gas for one claim does not reserve it for two that are due at once', async () => {
  const master = await stage.aMaster()
  const call = { chainId: stage.ethereum.chainId, to: stranger(), value: 0n, data: '0x' } as const
  let isDelivered = false
  let polls = 0
  stage.conduct = {
    status: async () => {
      polls += 1
      return isDelivered
        ? { state: 'completed', partnerStatus: 'complete', message: toHex(polls, { size: 32 }) }
        : { state: 'claimable', partnerStatus: 'complete', call }
    },
  }
  const sent = [await stage.send(bridgeOf(master)), await stage.send(bridgeOf(master))]
  const words = async () => (await Promise.all(sent.map((one) => stage.partnerStatusOf(one)))).toSorted()
  const unpaid = 'complete: no gas to claim'
  await expect.poll(words).toEqual([unpaid, unpaid])
  const node = ethereumNode()
  await node.setAutomine(false)
  const network = networkByName('eth-sepolia')
  if (network === undefined) throw new Error('no such network')
  const { maxFee } = await stage.world.server.deps.chains.on(network).offeredFees()
  await node.setBalance({ address: master.address, value: (21_000n * maxFee * 3n) / 2n })
  await expect.poll(words).toEqual(['complete', unpaid])
  // Each is polled some more times.
  const looks = async () =>
    (await stage.world.database.db.many(z.object({ lookAt: z.date() }), looking)).map(({ lookAt }) => lookAt.getTime())
  const looking = sql`select look_at from transfers where from_address = ${master.address} order by id`
  const before = await looks()
  await expect.poll(looks).not.toEqual(before)
  expect(await words()).toEqual(['complete', unpaid])
  const { claims } = await stage.world.database.db.one(
    z.object({ claims: z.bigint() }),
    sql`select count(*) as claims from chain_transactions where sender = ${master.address} and network = 'eth-sepolia'`,
  )
  expect(claims).toBe(1n)
  isDelivered = true
  await node.setAutomine(true)
  await node.mine({ blocks: 1 })
  for (const one of sent) expect(await stage.ended(one)).toMatchObject({ status: 'confirmed' })
})

test('a child bridges with gas from its master', async () => {
  const master = await stage.aMaster(0n)
  const { body } = await stage.world.call(stage.org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(body.id), address: body.address as Address }
  await fundToken(stage.base, 'USDC', child.address, 20_000_000n)
  const requested = bridgeOf(child, { amount: '20' })
  const sent = await stage.send(requested)
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  await stage.relayer.pass()
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(await tokenBalance(stage.ethereum, 'USDC', requested.toAddress)).toBe(19_980_000n)
  expect(await tokenBalance(stage.base, 'USDC', child.address)).toBe(0n)
})

test('the working process dies after every step, and another continues; the money moves once', async () => {
  const node = createTestClient({ mode: 'anvil', transport: http(stage.base.rpcUrl) })
  const orphaned = await aWorld({
    chains: [stage.base, stage.ethereum],
    config: {
      role: 'api',
      transferWaitMs: 0,
      partners,
    },
  })
  try {
    const own = await orphaned.organisation()
    const master = await stage.aMaster(100_000_000n, { at: orphaned, key: own.testKey })
    const requested = bridgeOf(master)
    const sent = await orphaned.call(own.testKey, 'POST', path, requested)
    expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
    const { db } = orphaned.database
    const progressOf = async () =>
      (
        await db.one(
          z.object({ seen: z.string() }),
          sql`select concat((select count(transaction_id) from transfer_steps), '/', (select string_agg(status, ',' order by nonce)
            from chain_transactions), '/', (select concat(look_at is null, left_at is null, partner_status, status) from transfers)) as seen`,
        )
      ).seen
    const stages = new Set<string>()
    await node.setAutomine(false)
    // At most one block between two passes, and none for the first process: each step is seen before the next one.
    const nextProgress = async () => {
      if (stages.size > 1) await node.mine({ blocks: 1 })
      return progressOf()
    }
    for (let seen = await progressOf(); !seen.endsWith('confirmed'); seen = await progressOf()) {
      stages.add(seen)
      const worker = await orphaned.another({ role: 'work' })
      await expect.poll(nextProgress, { timeout: 60_000, interval: 5 }).not.toBe(seen)
      await worker.server.stop()
      await stage.relayer.pass()
    }
    expect(stages.size, 'deaths at as many stages').toBeGreaterThanOrEqual(3)
    expect(await tokenBalance(stage.ethereum, 'USDC', requested.toAddress)).toBe(49_950_000n)
    expect(await tokenBalance(stage.base, 'USDC', master.address)).toBe(50_000_000n)
    const counted = await db.one(
      z.object({ sent: z.bigint(), reported: z.bigint() }),
      sql`select (select count(*) from chain_transactions) as sent, (select count(*) from events where type = 'transfer.completed') as reported`,
    )
    expect(counted).toEqual({ sent: 2n, reported: 1n })
    const audited = await auditedActions(db, sent.body.id)
    expect(audited).toEqual(['transfers.create api-key', 'transfers.confirmed system'])
  } finally {
    await node.setAutomine(true)
    await orphaned.stop()
  }
})
