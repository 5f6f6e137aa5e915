import type { Chain, ChainName } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { chainsQuery } from '../../api/chains.ts'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Network } from '../../ui/network.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { walletsKey } from './queries.ts'

interface KindProps {
  readonly kind: 'managed' | 'own'
}

const titles = { managed: 'Create a wallet', own: 'Add your own wallet' } as const

/** Opens the sheet that makes a wallet. Viewers have no such button. */
export function NewWalletButton({ kind }: KindProps) {
  const mayCreate = useMay('member')
  const [isOpen, setOpen] = useState(false)
  if (!mayCreate) return null
  return (
    <>
      <Button tone="primary" onClick={() => setOpen(true)}>
        <Plus aria-hidden /> {titles[kind]}
      </Button>
      {isOpen && <NewWalletSheet kind={kind} onClose={() => setOpen(false)} />}
    </>
  )
}

interface Draft {
  readonly name: string
  readonly chain: ChainName | ''
  readonly address: string
  readonly tokens: readonly string[]
}

/** Makes a wallet whose key the service keeps. */
export function NewManagedWalletSheet({ onClose }: { onClose: () => void }) {
  return <NewWalletSheet kind="managed" onClose={onClose} />
}

function NewWalletSheet({ kind, onClose }: KindProps & { onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { key, onError } = useIdempotencyKey()
  const [draft, setDraft] = useState<Draft>({ name: '', chain: '', address: '', tokens: [] })
  const { name, chain, address, tokens } = draft
  const isReady = chain !== '' && tokens.length > 0 && (kind === 'managed' || /^0x[0-9a-fA-F]{40}$/.test(address))
  const create = useMutation({
    mutationFn: async () => {
      if (chain === '') throw new Error('no chain is chosen')
      const body = { chain, supportedTokens: [...tokens], ...(name.trim() !== '' && { name: name.trim() }) }
      return kind === 'managed'
        ? purser.wallets.master.create(body, { idempotencyKey: key })
        : purser.wallets.byo.create({ ...body, address }, { idempotencyKey: key })
    },
    onError,
    onSuccess: ({ id }) => {
      toastDone(kind === 'managed' ? 'The wallet is created' : 'The wallet is added')
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
      void navigate({ to: '/wallets/$walletId', params: { walletId: id } })
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title={titles[kind]}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={create.isPending} disabled={!isReady} onClick={() => create.mutate()}>
            {kind === 'managed' ? 'Create the wallet' : 'Add the wallet'}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="text-ink-2">
          {kind === 'managed'
            ? 'The service creates and stores the key. No limits apply until you set a spend policy.'
            : 'You keep the key. Anyone who has it can spend the money. Check that you can spend from this address.'}
        </p>
        <Field label="Name" hint="Only your organisation sees it.">
          {(wiring) => (
            <TextInput
              {...wiring}
              maxLength={200}
              placeholder="Treasury"
              value={name}
              onChange={({ target }) => setDraft({ ...draft, name: target.value })}
            />
          )}
        </Field>
        {kind === 'own' && (
          <Field
            label="Address"
            fault={
              address === '' || /^0x[0-9a-fA-F]{40}$/.test(address)
                ? undefined
                : 'An address is 0x and 40 hexadecimal digits.'
            }
          >
            {(wiring) => (
              <TextInput
                {...wiring}
                className="font-mono"
                value={address}
                onChange={({ target }) => setDraft({ ...draft, address: target.value.trim() })}
              />
            )}
          </Field>
        )}
        <ChainAndTokens draft={draft} onChange={setDraft} />
        {create.error !== null && <ErrorBlock error={create.error} />}
      </div>
    </Sheet>
  )
}

function ChainAndTokens({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const purser = usePurser()
  const chains = useQuery(chainsQuery(purser))
  const { chain } = draft
  const tokens = useQuery({
    queryKey: ['chains', chain, 'tokens'],
    queryFn: async ({ signal }) =>
      chain === '' ? [] : (await purser.chains.tokens(chain, { limit: 100 }, { signal }).page()).items,
    enabled: chain !== '',
  })
  const choose = (name: string) => {
    const found = chains.data?.find((one) => one.name === name)
    onChange({ ...draft, chain: found?.name ?? '', tokens: [] })
  }
  const toggle = (symbol: string) => {
    const has = draft.tokens.includes(symbol)
    onChange({ ...draft, tokens: has ? draft.tokens.filter((one) => one !== symbol) : [...draft.tokens, symbol] })
  }
  return (
    <>
      <Field label="Network">
        {(wiring) => (
          <Select {...wiring} value={chain} onChange={({ target }) => choose(target.value)}>
            <option value="">Choose a network</option>
            {chains.data?.filter(isUsable).map(({ name }) => (
              <option key={name} value={name}>
                <Network chain={name} />
              </option>
            ))}
          </Select>
        )}
      </Field>
      {chain !== '' && (
        <fieldset>
          <legend className="mb-1 text-sm font-medium">Tokens</legend>
          <div className="flex flex-wrap gap-x-5 gap-y-2">
            {tokens.data?.map(({ symbol, name }) => (
              <label key={symbol} className="flex items-center gap-2">
                <input
                  type="checkbox"
                  className="size-4 accent-(--accent)"
                  checked={draft.tokens.includes(symbol)}
                  onChange={() => toggle(symbol)}
                />
                {symbol} <span className="text-ink-3">{name === symbol ? '' : name}</span>
              </label>
            ))}
          </div>
          <p className="mt-1 text-sm text-ink-3">Deposits of other tokens are reported as unsupported.</p>
        </fieldset>
      )}
      {chains.error !== null && <ErrorBlock error={chains.error} />}
      {tokens.error !== null && <ErrorBlock error={tokens.error} />}
    </>
  )
}

function isUsable({ configured }: Chain): boolean {
  return configured
}
