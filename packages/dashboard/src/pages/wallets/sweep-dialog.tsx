import type { ChildAddress, MasterWallet } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Merge } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { walletsKey } from './queries.ts'
import { walletName } from './wallet-state.tsx'

interface SweepProps {
  readonly wallet: MasterWallet
  /** The only child address to sweep; all of the wallet's without it. */
  readonly child?: ChildAddress
}

/** Opens the dialog that moves balances of child addresses to their wallet. Viewers have no such button. */
export function SweepButton({ wallet, child }: SweepProps) {
  const maySweep = useMay('member') && wallet.provisionStatus === 'active'
  const [isOpen, setOpen] = useState(false)
  if (!maySweep) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Merge aria-hidden /> Sweep
      </Button>
      {isOpen && <SweepDialog wallet={wallet} {...(child !== undefined && { child })} onClose={() => setOpen(false)} />}
    </>
  )
}

function SweepDialog({ wallet, child, onClose }: SweepProps & { onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { key, onError } = useIdempotencyKey()
  const [token, setToken] = useState(wallet.supportedTokens[0] ?? '')
  const [minAmount, setMinAmount] = useState('')
  const isReady = token !== '' && (minAmount === '' || /^\d{1,60}(?:\.\d{1,60})?$/.test(minAmount))
  const sweep = useMutation({
    mutationFn: () =>
      purser.wallets.master.sweep(
        wallet.id,
        {
          token,
          ...(child !== undefined && { childAddressIds: [child.id] }),
          ...(minAmount !== '' && { minAmount }),
        },
        { idempotencyKey: key },
      ),
    onError,
    onSuccess: ({ id, childCount }) => {
      toastDone(childCount === 0 ? `No child address has ${token} to sweep` : 'The sweep has begun')
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
      void navigate({
        to: '/wallets/$walletId',
        params: { walletId: wallet.id },
        search: { view: 'sweeps', open: id },
      })
    },
  })
  const name = walletName(wallet)
  return (
    <Dialog
      open
      onClose={onClose}
      title={child === undefined ? 'Sweep all child addresses' : 'Sweep this child address'}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={sweep.isPending} disabled={!isReady} onClick={() => sweep.mutate()}>
            Sweep {token}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="break-words text-ink-2">
          {child === undefined
            ? `Moves the balance of each child address to ${name}.`
            : `Moves the balance of this address to ${name}.`}{' '}
          The service pays the gas. Money that is reserved or on hold stays.
        </p>
        <Field label="Token">
          {(wiring) => (
            <Select {...wiring} value={token} onChange={({ target }) => setToken(target.value)}>
              {wallet.supportedTokens.map((symbol) => (
                <option key={symbol}>{symbol}</option>
              ))}
            </Select>
          )}
        </Field>
        {child === undefined && (
          <Field label="Smallest balance" hint="Optional. Child addresses that have less are skipped.">
            {(wiring) => (
              <TextInput
                {...wiring}
                inputMode="decimal"
                placeholder="0.50"
                value={minAmount}
                onChange={({ target }) => setMinAmount(target.value.trim())}
              />
            )}
          </Field>
        )}
        {sweep.error !== null && <ErrorBlock error={sweep.error} />}
      </div>
    </Dialog>
  )
}
