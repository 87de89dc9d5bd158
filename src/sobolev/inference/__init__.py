"""Tests with controlled error rates: Algorithm 4, the test of independence, the audit."""

from sobolev.inference.audit_result import AuditResult, AuditRun
from sobolev.inference.auditing import AuditChoice, audit, audit_and_choose
from sobolev.inference.hrt import HRTResult, HRTSelector, hrt_test
from sobolev.inference.independence import SICTestResult, sic_test
from sobolev.inference.schemes import Forward, MonteCarlo, Split

__all__ = [
    "AuditChoice",
    "AuditResult",
    "AuditRun",
    "Forward",
    "HRTResult",
    "HRTSelector",
    "MonteCarlo",
    "SICTestResult",
    "Split",
    "audit",
    "audit_and_choose",
    "hrt_test",
    "sic_test",
]
