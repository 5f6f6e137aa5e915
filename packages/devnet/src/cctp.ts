import type { Address } from '@purser/protocol'
import { encodeAbiParameters, encodeFunctionData, type Hex, pad, parseAbi } from 'viem'
import transmitter from './artifacts/CircleMessageTransmitterV2.json' with { type: 'json' }
import messenger from './artifacts/CircleTokenMessengerV2.json' with { type: 'json' }
import minter from './artifacts/CircleTokenMinterV2.json' with { type: 'json' }
import { devAccount } from './chains.ts'
import { type ReachableChain, sendFromDevAccount } from './faucet.ts'
import { rpc, rpcHex } from './rpc.ts'

/** A chain in the terms of Circle's contracts. */
export interface CctpEnd {
  readonly chain: ReachableChain
  readonly domain: number
  readonly usdc: Address
  readonly tokenMessenger: Address
  readonly messageTransmitter: Address
}

const abi = parseAbi([
  'struct Roles { address owner; address rescuer; address feeRecipient; address denylister; address tokenMinter; address minFeeController; }',
  'function initialize(Roles roles, uint256 minFee, uint32[] remoteDomains, bytes32[] remoteTokenMessengers)',
  'function initialize(address owner, address pauser, address rescuer, address attesterManager, address[] attesters, uint256 threshold, uint256 bodyBytesMax)',
  'function addLocalTokenMessenger(address messenger)',
  'function linkTokenPair(address localToken, uint32 remoteDomain, bytes32 remoteToken)',
  'function setMaxBurnAmountPerMessage(address token, uint256 amount)',
])

/**
 * The addresses of Circle's minter on a local chain, and of the receiver of its fees. Only these contracts use them.
 */
const minterAddress = '0xcc7c000000000000000000000000000000000001'
export const cctpFeeRecipient: Address = '0xcc7c000000000000000000000000000000000002'
const version = 1
const bodyBytesMax = 8_192n
const burnMax = 10n ** 13n

/**
 * Puts Circle's own CCTP v2 contracts at the addresses that they have on the real chain. There is one attester: what is
 * burned on one chain can be minted on the other with that attester's signature. The attester's key is a test key, never
 * a real one.
 */
export async function installCctp(here: CctpEnd, there: CctpEnd, attester: Address): Promise<void> {
  const { chain, domain, usdc, tokenMessenger, messageTransmitter } = here
  const us = devAccount.address
  await construct(chain, messageTransmitter, transmitter.creationBytecode, words(domain, version))
  await construct(chain, tokenMessenger, messenger.creationBytecode, words(BigInt(messageTransmitter), version))
  await construct(chain, minterAddress, minter.creationBytecode, words(BigInt(us)))
  for (const slot of [minter.slots._owner, minter.slots._tokenController])
    await rpc(chain.rpcUrl, 'anvil_setStorageAt', [minterAddress, pad(`0x${slot.toString(16)}`), pad(us)])
  const send = (to: Address, data: Hex) => sendFromDevAccount(chain, to, data)
  const roles = {
    ...{ owner: us, rescuer: us, denylister: us, minFeeController: us },
    feeRecipient: cctpFeeRecipient,
    tokenMinter: minterAddress,
  } as const
  const remotes = [[there.domain], [pad(there.tokenMessenger)]] as const
  const asMessenger = { abi, functionName: 'initialize', args: [roles, 0n, ...remotes] } as const
  await send(tokenMessenger, encodeFunctionData(asMessenger))
  const asTransmitter = [us, us, us, us, [attester], 1n, bodyBytesMax] as const
  await send(messageTransmitter, encodeFunctionData({ abi, functionName: 'initialize', args: asTransmitter }))
  const asMinter = [
    { functionName: 'addLocalTokenMessenger', args: [tokenMessenger] },
    { functionName: 'linkTokenPair', args: [usdc, there.domain, pad(there.usdc)] },
    { functionName: 'setMaxBurnAmountPerMessage', args: [usdc, burnMax] },
  ] as const
  for (const call of asMinter) await send(minterAddress, encodeFunctionData({ abi, ...call }))
}

function words(...values: readonly (bigint | number)[]): Hex {
  return encodeAbiParameters(
    values.map(() => ({ type: 'uint256' })),
    values.map((value) => BigInt(value)),
  )
}

/** Runs a constructor in a call. Returns the code to set, with its immutables filled in. */
async function construct(chain: ReachableChain, address: Address, code: string, args: Hex): Promise<void> {
  const runtime = await rpcHex(chain.rpcUrl, 'eth_call', [
    { from: devAccount.address, data: `${code}${args.slice(2)}` },
    'latest',
  ])
  await rpc(chain.rpcUrl, 'anvil_setCode', [address, runtime])
}
