import type { TransferQuote } from '@purser/sdk'
import { Network } from '../../ui/network.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { Amount, Id, Time } from '../../ui/values.tsx'
import type { TransferDraft } from './transfer-form.tsx'
import { routeWords } from './transfer-state.tsx'
import { useManagedWallets, walletLabel } from './wallets.ts'

/** Describes a transfer for confirmation, before anything moves. */
export function TransferReview({ draft, quote }: { draft: TransferDraft; quote: TransferQuote }) {
  const wallet = useManagedWallets().data?.find(({ id }) => id === draft.walletId)
  return (
    <>
      <p>
        <strong className="font-medium">
          <Amount value={quote.amount} token={quote.fromToken} />
        </strong>{' '}
        leaves {wallet === undefined ? 'the wallet' : walletLabel(wallet)}. It cannot be canceled once it is sent.
      </p>
      <Facts>
        <Fact name="To">
          <Id value={draft.toAddress} whole />
        </Fact>
        <Fact name="On">
          <Network chain={quote.toChain} />
        </Fact>
        <Fact name="Recipient receives">
          <Amount value={quote.toAmount} token={quote.toToken} />
        </Fact>
        <Fact name="At least">
          <Amount value={quote.minToAmount} token={quote.toToken} />
        </Fact>
        <Fact name="Fee">
          <Amount value={quote.feeAmount} token={quote.feeToken} />
        </Fact>
        <Fact name="Route">{routeWords(quote)}</Fact>
        {draft.reference !== '' && <Fact name="Reference">{draft.reference}</Fact>}
        <Fact name="Quote expires">
          <Time at={quote.expiresAt} full />
        </Fact>
      </Facts>
      {quote.deniedBy !== null && (
        <p role="alert" className="rounded-control bg-held-soft p-3 font-medium text-held">
          The policy of this wallet refuses it now: {quote.deniedBy}.
        </p>
      )}
    </>
  )
}
