import { bytesToHex, domainSeparator, type Network, type TokenInfo } from '@purser/protocol'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { TokenDomain, TokenDomainState } from './port.ts'

/** Reads a token's signing domain and decimals; undefined when the contract returns no usable data. Throws when no node answers. */
export type ReadToken = (token: TokenInfo) => Promise<(TokenDomain & { readonly decimals: number }) | undefined>

export interface TokenDomains {
  state(token: TokenInfo): TokenDomainState
  /** Checks the tokens that are due. Never throws: when a node is down, the states stay as they are and are checked again. */
  check(): Promise<void>
}

const checkAgainMs = 3_600_000

/**
 * Compares the registry's data of tokens that are paid by signature with their contracts. With a wrong name or version, valid payments would be
 * refused or payments accepted that can never be settled; with wrong decimals, amounts would be wrong.
 */
export function createTokenDomains(
  network: Network,
  read: ReadToken,
  { clock, log }: { readonly clock: Clock; readonly log: Log | undefined },
): TokenDomains {
  const found = new Map<string, { readonly state: TokenDomainState; readonly checkedAtMs: number }>()
  const checkOne = async (token: TokenInfo): Promise<void> => {
    const onChain = await read(token)
    const before = found.get(token.address)?.state
    const isRight =
      onChain !== undefined && onChain.decimals === token.decimals && onChain.separator === separatorOf(network, token)
    found.set(token.address, { state: isRight ? 'right' : 'wrong', checkedAtMs: clock.now().getTime() })
    if (isRight || before === 'wrong') return
    log?.error(
      {
        network: network.name,
        token: token.symbol,
        address: token.address,
        onChain,
        ours: token.eip712,
        decimals: token.decimals,
      },
      'a token contract does not match the registry: payments by signature are not offered for it',
    )
  }
  return {
    state: (token) => found.get(token.address)?.state ?? 'unchecked',
    async check() {
      const now = clock.now().getTime()
      const due = network.tokens.filter((token) => {
        const known = found.get(token.address)
        return token.eip712 !== null && (known === undefined || known.checkedAtMs + checkAgainMs <= now)
      })
      await Promise.all(due.map((token) => checkOne(token).catch(() => undefined)))
    },
  }
}

function separatorOf(network: Network, token: TokenInfo): string | undefined {
  if (token.eip712 === null) return undefined
  return bytesToHex(domainSeparator({ ...token.eip712, chainId: network.chainId, verifyingContract: token.address }))
}
