import type { MasterWallet, NewTransfer, TransferQuote } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { groupDecimal } from '../../ui/format.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { type TransferDraft, TransferForm, whyNotReady } from './transfer-form.tsx'
import { TransferReview } from './transfer-review.tsx'

interface SheetProps {
  /** The wallet to send from, where the reader came from it. */
  readonly from?: MasterWallet
  readonly onClose: () => void
  readonly onSent: (transferId: string) => void
}

const emptyDraft: TransferDraft = {
  walletId: '',
  token: '',
  amount: '',
  toAddress: '',
  toChain: '',
  toToken: '',
  reference: '',
}

function draftFrom({ id, chain, supportedTokens: [token = ''] }: MasterWallet): TransferDraft {
  return { ...emptyDraft, walletId: id, token, toChain: chain, toToken: token }
}

/** Sends money in two steps: a quote to review, then a confirmation. */
export function NewTransferSheet({ from, onClose, onSent }: SheetProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [draft, setDraft] = useState(() => (from === undefined ? emptyDraft : draftFrom(from)))
  const quote = useMutation({ mutationFn: (body: NewTransfer) => purser.transfers.quote(body) })
  const send = useMutation({
    // The quote's id is the Idempotency-Key: a second press, or a press after a lost response, never sends twice.
    mutationFn: ({ quoteId }: TransferQuote) =>
      purser.transfers.create(
        { ...bodyOf(draft), quoteId, ...(draft.reference !== '' && { reference: draft.reference }) },
        { idempotencyKey: quoteId },
      ),
    onSuccess: ({ id, amount, fromToken }) => {
      toastDone(`Transfer of ${groupDecimal(amount)} ${fromToken} is on its way`)
      void queries.invalidateQueries({ queryKey: ['transfers'] })
      onClose()
      onSent(id)
    },
  })
  const edit = () => {
    quote.reset()
    send.reset()
  }
  const { data } = quote
  const missing = whyNotReady(draft)
  return (
    <Sheet
      open
      onClose={onClose}
      title="Send money"
      footer={
        data === undefined ? (
          <>
            <p className="mr-auto self-center text-sm text-ink-3">{missing}</p>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              tone="primary"
              busy={quote.isPending}
              disabled={missing !== undefined}
              onClick={() => quote.mutate(bodyOf(draft))}
            >
              Get a quote
            </Button>
          </>
        ) : (
          <>
            <Button onClick={edit}>Change it</Button>
            <Button
              tone="primary"
              busy={send.isPending}
              disabled={data.deniedBy !== null}
              onClick={() => send.mutate(data)}
            >
              Send {groupDecimal(data.amount)} {data.fromToken}
            </Button>
          </>
        )
      }
    >
      {data === undefined ? (
        <div className="flex flex-col gap-4">
          <TransferForm draft={draft} onChange={setDraft} />
          {quote.error !== null && <ErrorBlock error={quote.error} />}
        </div>
      ) : (
        <div className="flex flex-col gap-4">
          <TransferReview draft={draft} quote={data} />
          {send.error !== null && <ErrorBlock error={send.error} />}
        </div>
      )}
    </Sheet>
  )
}

function bodyOf({ walletId, token, amount, toAddress, toChain, toToken }: TransferDraft): NewTransfer {
  return {
    fromWalletId: walletId,
    fromToken: token,
    toAddress,
    toChain: toChain as NewTransfer['toChain'],
    toToken,
    amount,
  }
}
