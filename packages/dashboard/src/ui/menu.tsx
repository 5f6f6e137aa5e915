import { Menu as Base } from '@base-ui/react/menu'
import { Check } from 'lucide-react'
import type { ReactElement, ReactNode } from 'react'

interface MenuItem {
  readonly label: ReactNode
  readonly icon?: ReactNode
  readonly isChosen?: boolean
  readonly onChoose: () => void
}

export interface MenuGroup {
  readonly title?: string
  readonly items: readonly MenuItem[]
}

/** A menu that opens from a button. */
export function Menu({
  trigger,
  groups,
  side = 'bottom',
}: {
  trigger: ReactElement
  groups: readonly MenuGroup[]
  side?: 'top' | 'bottom'
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={6} side={side} align="start" className="z-50 outline-none">
          <Base.Popup className="pop-in max-h-(--available-height) min-w-52 max-w-80 overflow-y-auto rounded-card border border-line bg-surface p-1 shadow-float outline-none">
            {groups.map((group, index) => (
              <Base.Group
                key={group.title ?? index}
                className="border-t border-line py-1 first:border-t-0 first:pt-0 last:pb-0"
              >
                {group.title !== undefined && (
                  <Base.GroupLabel className="px-2 pt-1 pb-0.5 text-xs font-medium text-ink-3">
                    {group.title}
                  </Base.GroupLabel>
                )}
                {group.items.map((item, place) => (
                  <Base.Item
                    // biome-ignore lint/suspicious/noArrayIndexKey: the items keep their order while the menu is open
                    key={place}
                    onClick={item.onChoose}
                    className="flex min-h-8 cursor-pointer items-center gap-2 rounded-control px-2 py-1 outline-none data-highlighted:bg-well [&_svg]:size-4 [&_svg]:shrink-0 [&_svg]:text-ink-3"
                  >
                    {item.icon}
                    <span className="min-w-0 flex-1 break-words">{item.label}</span>
                    {item.isChosen === true && <Check aria-label="chosen" />}
                  </Base.Item>
                ))}
              </Base.Group>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
