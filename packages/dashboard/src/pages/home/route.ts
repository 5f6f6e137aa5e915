import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { type RangeSearch, readRange } from '../../ui/range.ts'

export const homeRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/',
    validateSearch: (search): RangeSearch => readRange(search),
    component: lazyRouteComponent(() => import('./home-page.tsx'), 'HomePage'),
  }),
] as const
