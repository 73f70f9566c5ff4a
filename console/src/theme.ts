import { Anchor, Badge, Button, createTheme, type CSSVariablesResolver, Input, Paper, Table, Tooltip } from '@mantine/core'

export const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: 9,
  defaultRadius: 'md',
  fontFamily: 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace',
  headings: { fontWeight: '650', sizes: { h1: { fontSize: '1.375rem', lineHeight: '1.3' }, h2: { fontSize: '1.0625rem', lineHeight: '1.4' } } },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Anchor: Anchor.extend({ defaultProps: { underline: 'hover' } }),
    Badge: Badge.extend({ defaultProps: { variant: 'light', radius: 'sm', tt: 'none', fw: 600 } }),
    Button: Button.extend({ defaultProps: { size: 'sm' } }),
    Input: Input.extend({ defaultProps: { size: 'sm' } }),
    InputWrapper: Input.Wrapper.extend({ defaultProps: { inputWrapperOrder: ['label', 'input', 'error', 'description'] } }),
    Paper: Paper.extend({ defaultProps: { withBorder: true, p: 'md' } }),
    Table: Table.extend({ defaultProps: { verticalSpacing: 7, horizontalSpacing: 'sm', fz: 'sm' } }),
    Tooltip: Tooltip.extend({ defaultProps: { withArrow: true, openDelay: 250, multiline: true, maw: 420 } }),
  },
})

// variables gives what axe measures enough contrast, in both schemes.
export const variables: CSSVariablesResolver = (t) => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': t.colors.gray[7],
    '--mantine-color-placeholder': t.colors.gray[7],
    '--mantine-color-anchor': '#06674a',
    '--mantine-color-teal-filled-hover': '#06674a',
    '--gh-page': t.colors.gray[0],
    '--gh-added': '#e6f6ec',
    '--gh-removed': '#fdecec',
  },
  dark: {
    '--mantine-color-dimmed': t.colors.dark[1],
    '--mantine-color-placeholder': t.colors.dark[2],
    '--mantine-color-anchor': t.colors.teal[4],
    '--mantine-color-teal-filled-hover': '#06674a',
    '--mantine-color-body': '#16181c',
    '--mantine-color-default-border': '#33373d',
    '--gh-page': '#101216',
    '--gh-added': '#12301f',
    '--gh-removed': '#3a1a1d',
  },
})
