"""Explains why a program is fast, and which programs it beat: as a value (`explain`) and as text (`explanation_text`)."""

from ansor.explain.explanation import explain as explain
from ansor.explain.text import explanation_text as explanation_text
