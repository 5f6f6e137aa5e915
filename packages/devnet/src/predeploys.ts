import { createRequire } from 'node:module'
import path from 'node:path'
import type { Network, TokenInfo } from '@purser/protocol'
import testUsdc from './artifacts/TestUsdc.json' with { type: 'json' }
import walletFactory from './artifacts/TestWalletFactory.json' with { type: 'json' }
import { rpc, rpcHex } from './rpc.ts'

/** Where Multicall3 is on every chain in the world. */
export const multicall3Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** Where every local chain has the factory of contract accounts (EIP-1271, EIP-6492) for tests. */
export const walletFactoryAddress = '0xFac7000000000000000000000000000000000001'

/** Puts on a fresh or restored chain what the registry says is there, without making a block. */
export async function installContracts(rpcUrl: string, network: Network): Promise<void> {
  await setCode(rpcUrl, walletFactoryAddress, walletFactory.deployedBytecode)
  if (!(await hasCode(rpcUrl, multicall3Address))) await installMulticall3(rpcUrl)
  for (const token of network.tokens) await installToken(rpcUrl, token)
}

async function installToken(rpcUrl: string, token: TokenInfo): Promise<void> {
  const isEnshrined = token.address.toLowerCase().startsWith('0x20c0')
  if (isEnshrined && (await hasCode(rpcUrl, token.address))) return
  if (isEnshrined) throw new Error(`The chain has no ${token.symbol} at ${token.address}`)
  await setCode(rpcUrl, token.address, testUsdc.deployedBytecode)
  const { slots } = testUsdc
  await setSlot(rpcUrl, token.address, slots.name, shortText(token.eip712?.name ?? token.name))
  await setSlot(rpcUrl, token.address, slots.symbol, shortText(token.symbol))
  await setSlot(rpcUrl, token.address, slots.version, shortText(token.eip712?.version ?? '1'))
  await setSlot(rpcUrl, token.address, slots.decimals, word(BigInt(token.decimals)))
}

/** viem carries Multicall3's creation code; running it in a call answers the code to set. */
async function installMulticall3(rpcUrl: string): Promise<void> {
  const require = createRequire(import.meta.url)
  const { multicall3Bytecode } = require(path.join(path.dirname(require.resolve('viem')), 'constants', 'contracts.js'))
  const call = { data: String(multicall3Bytecode) }
  await setCode(rpcUrl, multicall3Address, await rpcHex(rpcUrl, 'eth_call', [call, 'latest']))
}

async function hasCode(rpcUrl: string, address: string): Promise<boolean> {
  return (await rpcHex(rpcUrl, 'eth_getCode', [address, 'latest'])) !== '0x'
}

async function setCode(rpcUrl: string, address: string, code: string): Promise<void> {
  await rpc(rpcUrl, 'anvil_setCode', [address, code])
}

async function setSlot(rpcUrl: string, address: string, slot: number, value: string): Promise<void> {
  await rpc(rpcUrl, 'anvil_setStorageAt', [address, word(BigInt(slot)), value])
}

function word(value: bigint): string {
  return `0x${value.toString(16).padStart(64, '0')}`
}

/** Solidity's layout of a string below 32 bytes: the bytes from the left, twice the length in the last one. */
function shortText(text: string): string {
  const bytes = Buffer.from(text, 'utf8')
  if (bytes.length > 31) throw new Error(`"${text}" is too long for one slot`)
  const slot = Buffer.alloc(32)
  bytes.copy(slot)
  slot[31] = bytes.length * 2
  return `0x${slot.toString('hex')}`
}
