import type { MasterWallet } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { Pencil } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Time } from '../../ui/values.tsx'
import { PolicyCheck } from './policy-check.tsx'
import { PolicyLines } from './policy-lines.tsx'
import { PolicySheet } from './policy-sheet.tsx'
import { policyLines } from './policy-words.ts'
import { policyQuery } from './queries.ts'

/** The spend policy of the wallet and its child addresses, in sentences. */
export function PolicyCard({ wallet }: { wallet: MasterWallet }) {
  const { id: walletId, supportedTokens: tokens } = wallet
  const found = useQuery(policyQuery(usePurser(), walletId))
  const mayChange = useMay('admin')
  const [isEditing, setEditing] = useState(false)
  const { data } = found
  return (
    <Card
      title="Spend policy"
      aside={
        data !== undefined &&
        mayChange && (
          <Button small onClick={() => setEditing(true)}>
            <Pencil aria-hidden /> {data.policy === null ? 'Set a policy' : 'Change the policy'}
          </Button>
        )
      }
    >
      {data === undefined ? (
        found.error === null ? (
          <Skeleton lines={3} />
        ) : (
          <ErrorBlock error={found.error} onRetry={() => found.refetch()} />
        )
      ) : (
        <>
          <PolicyLines lines={policyLines(data.policy)} />
          {data.updatedAt !== null && (
            <p className="mt-3 text-sm text-ink-3">
              Set <Time at={data.updatedAt} />. It applies to the wallet and its child addresses together.
            </p>
          )}
          <PolicyCheck wallet={wallet} policy={data.policy} />
        </>
      )}
      {isEditing && data !== undefined && (
        <PolicySheet walletId={walletId} tokens={tokens} policy={data.policy} onClose={() => setEditing(false)} />
      )}
    </Card>
  )
}
