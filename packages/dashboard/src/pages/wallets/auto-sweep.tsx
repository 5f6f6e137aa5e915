import type { MasterWallet } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Timer } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { count } from '../../ui/format.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Amount } from '../../ui/values.tsx'
import { walletsKey } from './queries.ts'

type AutoSweep = NonNullable<MasterWallet['autoSweep']>

const everyMinutesMax = 1_440

/** The automatic sweep in words: what it takes from a child address, and how often it looks. */
export function AutoSweepWords({ token, minAmount, everyMinutes }: AutoSweep) {
  return (
    <span>
      from <Amount value={minAmount} token={token} />, every {count(everyMinutes, 'minute')}
    </span>
  )
}

/** Opens the dialog that sets the automatic sweep. Viewers have no such button. */
export function AutoSweepButton({ wallet }: { wallet: MasterWallet }) {
  const mayChange = useMay('member') && wallet.provisionStatus === 'active'
  const [isOpen, setOpen] = useState(false)
  if (!mayChange) return null
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Timer aria-hidden /> {wallet.autoSweep === null ? 'Set an automatic sweep' : 'Change the automatic sweep'}
      </Button>
      {isOpen && <AutoSweepDialog wallet={wallet} onClose={() => setOpen(false)} />}
    </>
  )
}

function AutoSweepDialog({ wallet, onClose }: { wallet: MasterWallet; onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const { autoSweep, supportedTokens } = wallet
  const [draft, setDraft] = useState({
    token: autoSweep?.token ?? supportedTokens[0] ?? '',
    minAmount: autoSweep?.minAmount ?? '1',
    everyMinutes: String(autoSweep?.everyMinutes ?? 10),
  })
  const minutes = Number(draft.everyMinutes)
  const isReady =
    /^\d{1,60}(?:\.\d{1,60})?$/.test(draft.minAmount) &&
    /^\d+$/.test(draft.everyMinutes) &&
    minutes >= 1 &&
    minutes <= everyMinutesMax
  const save = useMutation({
    mutationFn: (next: AutoSweep | null) => purser.wallets.master.update(wallet.id, { autoSweep: next }),
    onSuccess: (_, next) => {
      toastDone(next === null ? 'The automatic sweep is off' : 'The automatic sweep is set')
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
    },
  })
  return (
    <Dialog
      open
      onClose={onClose}
      title="Automatic sweep"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {autoSweep !== null && (
            <Button busy={save.isPending} onClick={() => save.mutate(null)}>
              Turn it off
            </Button>
          )}
          <Button
            tone="primary"
            busy={save.isPending}
            disabled={!isReady}
            onClick={() => save.mutate({ token: draft.token, minAmount: draft.minAmount, everyMinutes: minutes })}
          >
            Save
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-2">
          Moves the balances of the child addresses to this wallet by itself. The service pays the gas.
        </p>
        <Field label="Token">
          {(wiring) => (
            <Select
              {...wiring}
              value={draft.token}
              onChange={({ target }) => setDraft({ ...draft, token: target.value })}
            >
              {supportedTokens.map((symbol) => (
                <option key={symbol}>{symbol}</option>
              ))}
            </Select>
          )}
        </Field>
        <Field label="Smallest balance" hint="Child addresses that have less are skipped.">
          {(wiring) => (
            <TextInput
              {...wiring}
              inputMode="decimal"
              value={draft.minAmount}
              onChange={({ target }) => setDraft({ ...draft, minAmount: target.value.trim() })}
            />
          )}
        </Field>
        <Field label="Minutes between two sweeps" hint={`From 1 to ${everyMinutesMax.toLocaleString('en-US')}.`}>
          {(wiring) => (
            <TextInput
              {...wiring}
              inputMode="numeric"
              value={draft.everyMinutes}
              onChange={({ target }) => setDraft({ ...draft, everyMinutes: target.value.trim() })}
            />
          )}
        </Field>
        {save.error !== null && <ErrorBlock error={save.error} />}
      </div>
    </Dialog>
  )
}
