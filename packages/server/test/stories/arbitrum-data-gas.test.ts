import { fundNative, fundToken, tokenBalance } from '@purser/devnet'
import { type Address, bytesToHex, type Hex } from '@purser/protocol'
import { parseTransaction } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import {
  aChild,
  aTransferStage,
  bodyFrom,
  driving,
  masters,
  path,
  patient,
  type TransferStage,
  untilBooked,
} from '../transfer-stage.ts'

// Nodes of Arbitrum take the cost of a transaction's bytes as gas from its limit, and refuse a lower limit (nitro, `GasChargingHook`). anvil does
// not, so the proxy in front of it refuses those transactions. The precompile is code that returns its first storage slot as the price of a byte.
const arbGasInfo = '0x000000000000000000000000000000000000006C'
const returnsSlotAsSecondWord = '0x5f5460205260c05ff3'
const baseFee = 10_000_000n
const gasOfTransfer = 21_000n
let stage: TransferStage
/** Gas that the nodes take for each byte. */
let gasPerByte: bigint
const refused: Hex[] = []

beforeAll(async () => {
  // The operator has no gas budget: the gas of a child comes from its master.
  stage = await aTransferStage({ network: 'arbitrum', config: { settleNanoUsdPerDayMax: 0n } })
  await stage.chain.setCode({ address: arbGasInfo, bytecode: returnsSlotAsSecondWord })
  stage.node.lie('eth_sendRawTransaction', async ({ params, truth }) => {
    const raw = String(params[0]) as Hex
    const { gas = 0n } = parseTransaction(raw)
    if (gas >= gasOfTransfer + BigInt(raw.length / 2 - 1) * gasPerByte) return truth()
    refused.push(raw)
    return { error: { code: -32_000, message: 'intrinsic gas too low' } }
  })
})
afterAll(() => stage?.stop())
beforeEach(async () => {
  refused.length = 0
  await setGasPerByte(30n)
})

async function setGasPerByte(gas: bigint): Promise<void> {
  gasPerByte = gas
  await stage.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: baseFee })
  await stage.chain.mine({ blocks: 1 })
  const { baseFeePerGas } = await stage.chain.getBlock()
  await stage.chain.setStorageAt({
    address: arbGasInfo,
    index: 0,
    value: bytesToHex(wordOf(gas * (baseFeePerGas ?? 0n))),
  })
}

function wordOf(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * (31 - at))) & 255n))
}

async function aPoorChild() {
  const { body } = await stage.world.call(stage.key, 'POST', masters, { chain: 'arbitrum', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  const child = await aChild(stage, master)
  await fundNative(stage.dev, master.address, 10n ** 18n)
  await fundToken(stage.dev, 'USDC', child.address, 2_500_000n)
  await untilBooked(stage.world, stage.dev)
  return child
}

test('a child without coin on Arbitrum gets a top-up that its nodes accept, and its transfer is sent', async () => {
  const child = await aPoorChild()
  const body = bodyFrom(child, { toChain: 'arbitrum' })
  const sent = await stage.world.call(stage.key, 'POST', path, body)
  expect([sent.status, refused.length]).toEqual([201, 0])
  expect(await tokenBalance(stage.dev, 'USDC', body.toAddress)).toBe(2_500_000n)
})

test('a top-up whose bytes take more gas than when it was signed is signed again with more', async () => {
  const child = await aPoorChild()
  const body = bodyFrom(child, { toChain: 'arbitrum' })
  // The nodes already take more, and their precompile reports it later.
  gasPerByte = 900n
  const sending = stage.world.call(stage.key, 'POST', path, body)
  await expect.poll(() => refused.length, patient).toBeGreaterThan(0)
  await setGasPerByte(900n)
  const isThere = async (): Promise<boolean> => {
    stage.clock.forward(60_000)
    await setGasPerByte(900n)
    return (await tokenBalance(stage.dev, 'USDC', body.toAddress)) === 2_500_000n
  }
  await expect.poll(isThere, driving).toBe(true)
  expect((await sending).status).toBe(201)
})
