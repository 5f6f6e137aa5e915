import { useNavigate } from '@tanstack/react-router'
import { NewTransferSheet } from './new-transfer.tsx'

/** Sends money from any wallet, and opens the transfer. */
export function SendMoneySheet({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate()
  return (
    <NewTransferSheet
      onClose={onClose}
      onSent={(transferId) => void navigate({ to: '/transfers/$transferId', params: { transferId } })}
    />
  )
}
