import { setTimeout as delay } from 'node:timers/promises'
import { networkByName, tokenBySymbol } from '@purser/protocol'
import { decodeFunctionResult, encodeFunctionData, erc20Abi, type Hex, parseAbi } from 'viem'
import { type DevChain, devAccount } from './chains.ts'
import { isRecord, rpc, rpcHex } from './rpc.ts'

/** The members of a chain that the faucet uses. Both a chain of dev.json and a started one have them. */
export type ReachableChain = Pick<DevChain, 'network' | 'rpcUrl' | 'tokens'>

const mintAbi = parseAbi(['function mint(address to, uint256 amount)'])
const receiptMsMax = 30_000
const feeCoinWei = 10n ** 20n
const feeTokenUnits = 1_000_000_000n
const lanes = new Map<string, Promise<unknown>>()

/**
 * Gives an account test money: mints test tokens, and sends from the dev account on Tempo. Resolves when the transaction
 * is in a block.
 */
export async function fundToken(chain: ReachableChain, symbol: string, address: Hex, rawAmount: bigint): Promise<Hex> {
  const enshrined = networkByName(chain.network)?.nativeCoin === null
  const data = enshrined
    ? encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [address, rawAmount] })
    : encodeFunctionData({ abi: mintAbi, functionName: 'mint', args: [address, rawAmount] })
  return sendFromDevAccount(chain, tokenAddress(chain, symbol), data)
}

/** Sets an account's balance of the coin that pays gas, in wei. Tempo has no such coin. */
export async function fundNative(chain: ReachableChain, address: Hex, wei: bigint): Promise<void> {
  if (networkByName(chain.network)?.nativeCoin === null) throw new Error(`${chain.network} has no native coin to fund`)
  await rpc(chain.rpcUrl, 'anvil_setBalance', [address, `0x${wei.toString(16)}`])
}

/** The balance of an account in the coin that pays gas, in wei, at the latest block. */
export async function nativeBalance({ rpcUrl }: ReachableChain, address: Hex): Promise<bigint> {
  return BigInt(await rpcHex(rpcUrl, 'eth_getBalance', [address, 'latest']))
}

/**
 * Funds an account for fees: 100 of the native coin, on Tempo 1,000 pathUSD. An account with at least half of that is
 * left alone. On Tempo it gets the coin too, which is never charged: anvil's pool requires a balance for a plain
 * EIP-1559 transaction, where a real node reports an endless one.
 */
export async function fundFees(chain: ReachableChain, address: Hex): Promise<void> {
  if ((await nativeBalance(chain, address)) < feeCoinWei / 2n)
    await rpc(chain.rpcUrl, 'anvil_setBalance', [address, `0x${feeCoinWei.toString(16)}`])
  if (networkByName(chain.network)?.nativeCoin !== null) return
  if ((await tokenBalance(chain, 'pathUSD', address)) >= feeTokenUnits / 2n) return
  await fundToken(chain, 'pathUSD', address, feeTokenUnits)
}

/** The balance of an account in a token's smallest unit, at the latest block. */
export async function tokenBalance(chain: ReachableChain, symbol: string, address: Hex): Promise<bigint> {
  const data = encodeFunctionData({ abi: erc20Abi, functionName: 'balanceOf', args: [address] })
  const response = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: tokenAddress(chain, symbol), data }, 'latest'])
  return decodeFunctionResult({ abi: erc20Abi, functionName: 'balanceOf', data: response })
}

/**
 * Sends one transaction from the dev account and waits for its receipt. Throws when it reverts. One at a time per chain.
 */
export function sendFromDevAccount(chain: ReachableChain, to: Hex, data: Hex, wei = 0n): Promise<Hex> {
  const before = lanes.get(chain.rpcUrl) ?? Promise.resolve()
  const value = wei === 0n ? {} : { value: `0x${wei.toString(16)}` }
  const sent = { from: devAccount.address, to, data, ...value }
  const hash = before.then(() => rpcHex(chain.rpcUrl, 'eth_sendTransaction', [sent]))
  lanes.set(
    chain.rpcUrl,
    hash.catch(() => {}),
  )
  return hash.then((sent) => waitForReceipt(chain.rpcUrl, sent))
}

async function waitForReceipt(rpcUrl: string, hash: Hex): Promise<Hex> {
  const deadline = performance.now() + receiptMsMax
  while (performance.now() < deadline) {
    const receipt = await rpc(rpcUrl, 'eth_getTransactionReceipt', [hash])
    if (isRecord(receipt) && receipt.status === '0x1') return hash
    if (isRecord(receipt)) throw new Error(`Transaction ${hash} reverted`)
    await delay(10)
  }
  throw new Error(`Transaction ${hash} is in no block after ${receiptMsMax} ms`)
}

function tokenAddress(chain: ReachableChain, symbol: string): Hex {
  const network = networkByName(chain.network)
  const address = chain.tokens[symbol] ?? (network && tokenBySymbol(network, symbol)?.address)
  if (address === undefined) throw new Error(`${chain.network} has no token ${symbol}`)
  return address
}
