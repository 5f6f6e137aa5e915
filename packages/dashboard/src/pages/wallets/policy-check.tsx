import type { MasterWallet, NewTransfer, PolicyDocument } from '@purser/sdk'
import { useMutation } from '@tanstack/react-query'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Amount } from '../../ui/values.tsx'
import { PolicyLines } from './policy-lines.tsx'
import { PolicyTester } from './policy-tester.tsx'
import { denialWords, policyVerdict, type TriedMovement } from './policy-verdict.ts'

/**
 * “Would 30 USDC to 0x… pass?”, answered by the current policy; for a transfer also by a quote, which counts earlier
 * spending and the balance.
 */
export function PolicyCheck({ wallet, policy }: { wallet: MasterWallet; policy: PolicyDocument | null }) {
  const mayQuote = useMay('member')
  return (
    <details className="mt-4 border-t border-line pt-3">
      <summary className="cursor-pointer font-medium">Would a movement pass?</summary>
      <div className="pt-3">
        <PolicyTester
          policy={policy}
          tokens={wallet.supportedTokens}
          after={(movement) =>
            mayQuote &&
            movement.operation === 'transfer' &&
            policyVerdict(policy, movement).kind !== 'refuses' && (
              <QuoteCheck key={JSON.stringify([movement, policy])} wallet={wallet} movement={movement} />
            )
          }
        />
      </div>
    </details>
  )
}

/**
 * Requests a quote, which moves no money. It fails if the balance is too low, and names the rule whose cap is used up.
 */
function QuoteCheck({ wallet, movement }: { wallet: MasterWallet; movement: TriedMovement }) {
  const purser = usePurser()
  const { amount, token, recipient } = movement
  const quote = useMutation({
    mutationFn: () =>
      purser.transfers.quote({
        fromWalletId: wallet.id,
        fromToken: token,
        toAddress: recipient,
        toChain: wallet.chain as NewTransfer['toChain'],
        toToken: token,
        amount,
      }),
  })
  const { data, error } = quote
  return (
    <>
      {data !== undefined &&
        (data.deniedBy === null ? (
          <>
            <PolicyLines
              lines={[
                {
                  kind: 'allows',
                  text: 'Yes: the caps allow it after what has left already, and the wallet has enough.',
                },
              ]}
            />
            <p className="text-sm text-ink-3">
              Fee at most <Amount value={data.feeAmount} token={data.feeToken} />. Nothing was moved.
            </p>
          </>
        ) : (
          <PolicyLines lines={[denialWords(data.deniedBy, token)]} />
        ))}
      {error !== null && <ErrorBlock error={error} />}
      <span>
        <Button small busy={quote.isPending} onClick={() => quote.mutate()}>
          Check against what has left already
        </Button>
      </span>
    </>
  )
}
