import type { PaymentPayload } from '@x402/core/types'
import { type Address, encodeFunctionData, type Hex, multicall3Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { multicall3Address } from '../../protocol/src/index.ts'
import { sql } from '../../server/src/platform/db/db.ts'
import { dayLater, mineUntilFinal, refund } from '../../server/test/refund-stage.ts'
import { aMaster, aTransferStage, type Managed, type TransferStage } from '../../server/test/transfer-stage.ts'
import { codeOf } from '../../server/test/world.ts'
import { exactPermit2ProxyAddress, fundNative, permit2Address } from '../src/index.ts'
import { giveUp, Logged, settleData, signedWithNonce } from './official-permit2-calls.ts'
import { aPermit2Payer, type Permit2Payer, requirementsOf } from './official-permit2-payers.ts'

// Base counts a payment five blocks deep; its blocks are final when they are safe, here 32 deep.
let stage: TransferStage

beforeAll(async () => {
  stage = await aTransferStage({ epochBlocks: 32, config: { settleWaitMs: 5_000 } })
})
afterEach(() => {
  stage.node.tellTheTruth()
  return stage.chain.setAutomine(true)
})
afterAll(() => stage?.stop())

interface Bought {
  readonly paymentId: string
  readonly payload: PaymentPayload
  /** Settles it, and mines until it is settled. */
  settle(): Promise<void>
}

/** A verified payment of 0.01 by Permit2. */
async function aPurchase(payer: Permit2Payer, { address: payTo }: Managed, nonce: string): Promise<Bought> {
  const { world, dev, key, chain } = stage
  const facilitatorAddress = world.server.settlerAddress as Address
  const { extra, ...usual } = requirementsOf(dev, { scheme: 'exact', amount: '10000', payTo, facilitatorAddress })
  const base = { network: 'eip155:8453', maxTimeoutSeconds: 600, extra: { ...extra, name: 'USD Coin' } } as const
  const paymentRequirements = { ...usual, ...base }
  const payload = await signedWithNonce(dev, payer, paymentRequirements, nonce)
  const body = { x402Version: 2, paymentPayload: payload, paymentRequirements }
  expect((await world.call(key, 'POST', '/facilitator/verify', body)).body).toMatchObject({ isValid: true })
  const row = () =>
    world.database.db.one(
      Logged,
      sql`
      select id, status, tx_hash, failure_reason, raw_amount from payments
      where pay_to = ${payTo} and settlement ->> 'nonce' = ${nonce}`,
    )
  const { id: paymentId } = await row()
  const status = async () => {
    await chain.mine({ blocks: 2 })
    return (await row()).status
  }
  const settle = async () => {
    // The response waits for the blocks that the poll mines.
    const settling = world.call(key, 'POST', '/facilitator/settle', body)
    await expect.poll(status, { timeout: 30_000, interval: 150 }).toBe('settled')
    await settling
  }
  return { paymentId, payload, settle }
}

/** A signed transaction of a third party that settles these payments through a contract, each if it can. */
async function signedThroughContract(...bought: readonly Bought[]): Promise<Hex> {
  const account = privateKeyToAccount(generatePrivateKey())
  await fundNative(stage.dev, account.address, 10n ** 18n)
  const calls = bought.map(({ payload }) => {
    return { target: exactPermit2ProxyAddress, allowFailure: true, callData: settleData(payload) } as const
  })
  return account.signTransaction({
    chainId: stage.dev.chainId,
    nonce: 0,
    to: multicall3Address,
    data: encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [calls] }),
    gas: 2_000_000n,
    maxFeePerGas: 10n ** 9n,
    maxPriorityFeePerGas: 0n,
  })
}

async function send(serializedTransaction: Hex): Promise<void> {
  const hash = await stage.chain.sendRawTransaction({ serializedTransaction })
  expect((await stage.chain.waitForTransactionReceipt({ hash, pollingInterval: 50 })).status).toBe('success')
}

/** Two payments of one payer and one price that a third party settled with one transaction; `before` is the chain before it. */
async function aSharedSettlement() {
  const [payer, master] = [await aPermit2Payer(stage.dev), await aMaster(stage)]
  const bought = [await aPurchase(payer, master, '11'), await aPurchase(payer, master, '12')] as const
  const theirs = await signedThroughContract(...bought)
  const before = await stage.chain.snapshot()
  await send(theirs)
  await stage.chain.mine({ blocks: 8 })
  for (const { settle } of bought) await settle()
  return { payer, bought, theirs, before }
}

test('a day later a Permit2 payment is refunded although the nodes have forgotten its receipt and its logs', async () => {
  const [payer, master] = [await aPermit2Payer(stage.dev), await aMaster(stage)]
  const { paymentId, settle } = await aPurchase(payer, master, '11')
  await settle()
  await mineUntilFinal(stage)
  await dayLater(stage, paymentId)
  stage.node.lie('eth_getTransactionReceipt', () => ({ result: null }))
  stage.node.lie('eth_getLogs', () => ({ result: [] }))
  const made = await refund(stage, paymentId)
  expect([made.status, codeOf(made)]).toEqual([201, ''])
})

test('of two payments that one transaction settled through a contract, one is refunded if it came back with one transfer', async () => {
  const { payer, bought, theirs, before } = await aSharedSettlement()
  await stage.chain.revert({ id: before })
  await payer.send(permit2Address, giveUp(bought[0].payload))
  await send(theirs)
  await mineUntilFinal(stage)
  const codes = new Map<string, string>()
  for (const { paymentId } of bought) {
    // It is 503 until the watcher has read the blocks of the other fork.
    const codeNow = async () => codes.set(paymentId, codeOf(await refund(stage, paymentId))).get(paymentId)
    await expect.poll(codeNow).not.toBe('chain-unavailable')
  }
  expect([...codes.values()].toSorted()).toEqual(['', 'payment-not-refundable'])
})

test('two payments that one transaction settled through a contract are both refunded, by its receipt alone', async () => {
  const { bought } = await aSharedSettlement()
  await mineUntilFinal(stage)
  stage.node.lie('eth_getLogs', () => ({ result: [] }))
  for (const { paymentId } of bought) expect((await refund(stage, paymentId)).status).toBe(201)
})
