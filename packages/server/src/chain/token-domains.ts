import { bytesToHex, domainSeparator, type Network, type TokenInfo } from '@purser/protocol'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { TokenDomain, TokenDomainState } from './port.ts'

/** What a token says of itself; undefined when it says nothing usable. Throws when no node answers. */
export type ReadToken = (token: TokenInfo) => Promise<(TokenDomain & { readonly decimals: number }) | undefined>

export interface TokenDomains {
  state(token: TokenInfo): TokenDomainState
  /** Asks the chain about the tokens that are due. Never throws: a node that is down leaves them as they are, to be asked again. */
  check(): Promise<void>
}

const checkAgainMs = 3_600_000

/**
 * Compares what the registry says of the tokens that are paid by signature with what the chain says. A wrong name or version would
 * call good payments bad, or take what can never be settled; wrong decimals would take the wrong money.
 */
export function createTokenDomains(
  network: Network,
  read: ReadToken,
  { clock, log }: { readonly clock: Clock; readonly log: Log | undefined },
): TokenDomains {
  const found = new Map<string, { readonly state: TokenDomainState; readonly checkedAtMs: number }>()
  const checkOne = async (token: TokenInfo): Promise<void> => {
    const said = await read(token)
    const before = found.get(token.address)?.state
    const isRight =
      said !== undefined && said.decimals === token.decimals && said.separator === separatorOf(network, token)
    found.set(token.address, { state: isRight ? 'right' : 'wrong', checkedAtMs: clock.now().getTime() })
    if (isRight || before === 'wrong') return
    log?.error(
      {
        network: network.name,
        token: token.symbol,
        address: token.address,
        said,
        ours: token.eip712,
        decimals: token.decimals,
      },
      'a token is not what the registry says: payments by signature are not offered for it',
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
